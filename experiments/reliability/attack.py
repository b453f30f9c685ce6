"""Attacks by name, in groups; each says what must happen."""

from collections.abc import Callable
from typing import NamedTuple

from experiments.reliability.box import Box

GROUPS = {
    "files": "untrusted tables",
    "kept": "stores and reports",
    "faults": "processes and disks",
    "watch": "monitors and batches",
    "numerics": "extreme numbers",
    "environments": "machines and processes",
    "options": "the command line",
    "packaging": "installation",
}


class Attack(NamedTuple):
    """Something that is done to sparker from outside."""

    group: str
    name: str
    expected: str  # what must happen, in words
    act: Callable[..., None]  # of a box, and of a seed where it is random
    share: float = 0.0  # of the random cases that were asked for; 0 where there is nothing random


ATTACKS: list[Attack] = []

Act = Callable[[Box], None]
RandomAct = Callable[[Box, int], None]


def attack(group: str, name: str, expected: str) -> Callable[[Act], Act]:
    """Declare an attack that is always the same."""

    def declare(act: Act) -> Act:
        ATTACKS.append(Attack(group, name, expected, act))
        return act

    return declare


def random_attack(
    group: str, name: str, expected: str, share: float = 1.0
) -> Callable[[RandomAct], RandomAct]:
    """Declare an attack that is another one for each seed."""

    def declare(act: RandomAct) -> RandomAct:
        ATTACKS.append(Attack(group, name, expected, act, share))
        return act

    return declare
