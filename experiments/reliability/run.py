"""Attacks on sparker from outside, as users run it, and what became of them.

    python -m experiments.reliability.run [--only GROUP] [--cases N] [--named TEXT]

Each attack has a folder of its own, and is judged by ``ends``: a right answer, one clear error
(exit code 2) or a warning that names what is wrong is handled; a traceback, exit code 3, a wrong
answer in silence, a lost file, a hang, a signal or memory beyond a limit is not. Each is
written into ``result.json`` as it is done; ``--only`` and ``--named`` replace some attacks and
keep the others. Random attacks have N seeds each, or a share of that where one is slow.
"""

import argparse
import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

from experiments.record import as_text
from experiments.reliability import (  # noqa: F401
    environments,
    faults,
    files,
    kept,
    numerics,
    options,
    packaging,
    strange,
    watching,
)
from experiments.reliability.attack import ATTACKS, GROUPS, Attack
from experiments.reliability.box import box, clean_up
from experiments.reliability.ends import Done, NotHandled

from sparker.system.versions import versions

RESULT = Path(__file__).parent / "result.json"


def main() -> None:
    """As the options say."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=GROUPS, action="append", help="this group of attacks")
    parser.add_argument("--cases", type=int, default=100, help="seeds of each random attack")
    parser.add_argument("--named", action="append", help="attacks with this in their names")
    parser.add_argument("--output", type=Path, default=RESULT)
    wanted = parser.parse_args()
    # Where this runs in the background, Ctrl-C is ignored, and would be by all commands.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for group in wanted.only or GROUPS:
            attacks = [a for a in ATTACKS if a.group == group and is_named(a, wanted.named)]
            for one in attacks:
                keep(wanted.output, group, attacked(one, wanted.cases))
    finally:
        clean_up()


def is_named(one: Attack, parts: list[str] | None) -> bool:
    """Whether any of these is in its name, if there are some."""
    return not parts or any(part in one.name for part in parts)


def attacked(one: Attack, n_cases: int) -> dict[str, Any]:
    """What became of an attack, over all its seeds."""
    seeds: list[int | None] = [None]
    if one.share:
        seeds = list(range(max(1, round(n_cases * one.share))))
    failed = []
    runs: list[Done] = []
    for seed in seeds:
        with box() as here:
            try:
                one.act(here) if seed is None else one.act(here, seed)
            except NotHandled as what:
                failed.append({"seed": seed, "what": str(what)})
                print(f"NOT HANDLED {one.group}: {one.name} ({seed}): {what}", flush=True)
            runs += here.ran
    print(f"{len(seeds) - len(failed)} of {len(seeds)} {one.group}: {one.name}", flush=True)
    return {
        "name": one.name,
        "expected": one.expected,
        "tried": len(seeds),
        "handled": len(seeds) - len(failed),
        "failed": failed,
        "exit_codes": dict(sorted(Counter(str(run.code) for run in runs).items())),
        "slowest_s": round(max((run.seconds for run in runs), default=0), 1),
        "peak_MiB": round(max((run.peak for run in runs), default=0)),
    }


def keep(path: Path, group: str, row: dict[str, Any]) -> None:
    """Put an attack into the result, in place of the same one before and beside the others."""
    result = json.loads(path.read_text()) if path.exists() else {"groups": {}}
    groups = result["groups"]
    before = groups.get(group, {"attacks": []})["attacks"]
    every = {one["name"]: one for one in [*before, row]}
    names = [one.name for one in ATTACKS if one.group == group and one.name in every]
    groups[group] = {"attacks": [every[name] for name in names]}
    in_order = {name: groups[name] for name in GROUPS if name in groups}
    command = "python -m experiments.reliability.run"
    whole = {"command": command, "versions": versions(), "groups": in_order}
    path.write_text(as_text(whole))


if __name__ == "__main__":
    main()
