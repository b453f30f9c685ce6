"""``--systematic``: systematic uncertainties on the command line."""

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from sparker.cli.options import Real, options
from sparker.cli.terminal import BadInput

if TYPE_CHECKING:
    from sparker.tables import Table

KINDS = ("weights", "files", "moved")
FORM = " or ".join(f"NAME={kind}:UP[,DOWN][;prior=S]" for kind in KINDS)


class Given(NamedTuple):
    """A systematic as it was typed."""

    name: str
    kind: str  # weights: columns of the reference; files; moved: files with the reference's rows
    ends: tuple[str, ...]  # up and, if given, down
    prior: float


def _number(text: str) -> float:
    """A number as it was typed; NaN where it is none."""
    with suppress(ValueError):
        return float(text)
    return math.nan


class SystematicType(click.ParamType):  # type: ignore[type-arg]
    """A systematic in one word."""

    name = "NAME=weights:UP,DOWN|files:UP,DOWN|moved:UP,DOWN"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Given:
        """Take it apart.

        >>> SystematicType().convert("jes=weights:w_up,w_down;prior=0.5", None, None)
        Given(name='jes', kind='weights', ends=('w_up', 'w_down'), prior=0.5)
        """
        name, _, rest = str(value).partition("=")
        kind, _, ends = rest.partition(":")
        ends, _, known = ends.partition(";prior=")
        parts = tuple(part.strip() for part in ends.split(","))
        prior = _number(known or "1")
        wrong = not name.strip() or kind not in KINDS or not 1 <= len(parts) <= 2
        if wrong or not all(parts) or not 0 < prior < math.inf:
            self.fail(f"{value!r} is not {FORM}.", param, ctx)
        return Given(name.strip(), kind, parts, prior)


class FixedType(click.ParamType):  # type: ignore[type-arg]
    """A value of a nuisance parameter."""

    name = "NAME=VALUE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, float]:
        """Take it apart.

        >>> FixedType().convert("jes=-1", None, None)
        ('jes', -1.0)
        """
        name, _, number = str(value).rpartition("=")
        found = _number(number)
        if not name.strip() or not math.isfinite(found):
            self.fail(f"{value!r} is not NAME=VALUE with a finite number.", param, ctx)
        return name.strip(), found


systematic_options = options(
    click.option(
        "--systematic", "systematic", multiple=True, type=SystematicType(),
        help="What is not known exactly of REFERENCE: its rows at plus and at minus one standard "
             "deviation, as columns of REFERENCE with weights, as files, or as files with the rows "
             "of REFERENCE, moved. May be given often.",
    ),
    click.option(
        "--normalisation", type=Real(0, max=100, min_open=True),
        help="Relative uncertainty of --expected, such as 0.05.",
    ),
    click.option(
        "--at", multiple=True, type=FixedType(),
        help="Fix a nuisance parameter at a value, such as 1 where UP was made, instead of fitting "
             "it. May be given often.",
    ),
)  # fmt: skip


def fixed_at(given: tuple[tuple[str, float], ...]) -> dict[str, float]:
    """The values that were typed, by name; none twice."""
    names = [name for name, _ in given]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadInput(f"--at gives {twice[0]} twice; give each systematic one value")
    return dict(given)


def columns_of(given: tuple[Given, ...]) -> list[str]:
    """The columns of REFERENCE that hold weights."""
    return [end for one in given if one.kind == "weights" for end in one.ends]


def files_of(given: tuple[Given, ...]) -> list[str]:
    """The files with rows."""
    return [end for one in given if one.kind != "weights" for end in one.ends]


def systematics(given: tuple[Given, ...], reference: "Table", key: str | None) -> list[Any]:
    """What the library knows them as."""
    from sparker import tables
    from sparker.nulls import Systematic

    def end(one: Given, name: str) -> Any:
        if one.kind != "weights":
            return tables.read(name, columns=reference.columns or None, key=key)
        column = reference.extra[name]
        if column.dtype == object:
            raise BadInput(f"the weights {name} of systematic {one.name} are no numbers")
        return column

    return [
        Systematic(
            one.name,
            up=end(one, one.ends[0]),
            down=end(one, one.ends[1]) if len(one.ends) > 1 else None,
            prior=one.prior,
            paired=True if one.kind == "moved" else None,
        )
        for one in given
    ]
