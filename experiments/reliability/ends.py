"""How a command may end, and what is no end: the judgement of every attack.

An attack is handled if the answer is right, or if it is refused in plain words, or if a warning
names what is wrong. Whatever else happens is not handled, and ``NotHandled`` says what it was.
"""

import json
from typing import NamedTuple

MAX_MIB = 3072
"""Memory that a command may take beside what it had; bombs ask for more."""


class NotHandled(Exception):  # noqa: N818
    """What became of an attack that was not handled."""


class Done(NamedTuple):
    """A command that has ended, or was stopped."""

    code: int | None  # None: it had to be stopped
    out: str
    err: str
    seconds: float  # of work
    peak: float  # MiB that it and its children took at most, beside what they had at first

    @property
    def said(self) -> str:
        """All words of stderr in one line."""
        return " ".join(self.err.split())


def check(is_so: object, otherwise: str) -> None:
    """What must be so."""
    if not is_so:
        raise NotHandled(otherwise)


def plain(done: Done) -> Done:
    """It ended by itself, in time, within memory, and not by a mistake of ours."""
    check(done.code is not None, f"no end after {done.seconds:.0f} s of work")
    assert done.code is not None
    check(done.peak < MAX_MIB, f"{done.peak:.0f} MiB of memory")
    check(done.code >= 0, f"signal {-done.code}")
    check(done.code != 3, f"exit code 3: {done.said[-200:]}")
    check("Traceback" not in done.err + done.out, f"a traceback: {done.said[-200:]}")
    raw = {c for c in done.out + done.err if c not in "\n\r" and not c.isprintable()}
    check(not raw, f"raw characters {sorted(raw)}")
    return done


def refused(done: Done, *words: str) -> Done:
    """One clear error, with these words."""
    plain(done)
    check(done.code == 2, f"exit code {done.code} in place of 2: {done.said[-200:]}")
    check("Error:" in done.err, f"no error is said: {done.said[-200:]}")
    for word in words:
        check(word in done.said, f"not said {word!r}: {done.said[-200:]}")
    return done


def warned(done: Done, *words: str) -> Done:
    """An answer, and a warning with these words."""
    plain(done)
    check(done.code in (0, 1), f"exit code {done.code}: {done.said[-200:]}")
    check("Warning" in done.err, "no warning")
    for word in words:
        check(word in done.said, f"not said {word!r}: {done.said[-200:]}")
    return done


def either(done: Done) -> Done:
    """An answer or one clear error."""
    return refused(done) if plain(done).code == 2 else plain(done)


def p_value(done: Done) -> float:
    """Of an answer in JSON."""
    plain(done)
    check(done.code in (0, 1), f"exit code {done.code}: {done.said[-200:]}")
    value = json.loads(done.out)["p_value"]
    check(isinstance(value, float) and 0 < value <= 1, f"a p-value of {value}")
    return value


def found(done: Done, column: str = "column") -> Done:
    """A planted anomaly is found, or refused, or a warning names the column."""
    if plain(done).code == 2:
        return refused(done)
    p = p_value(done)
    is_named = "Warning" in done.err and column in done.said
    check(p <= 0.05 or is_named, f"p = {p:.2g} in silence")
    return done


def compatible(done: Done) -> Done:
    """Nothing was planted and nothing is found; or it is refused."""
    if plain(done).code == 2:
        return refused(done)
    p = p_value(done)
    check(p > 0.01, f"p = {p:.2g} though nothing was planted")
    return done
