"""All that decides a test, beside its two samples."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from os import PathLike
from typing import TYPE_CHECKING, Any, TypedDict

from numpy.typing import ArrayLike

from sparker.calibration.combine import Combination, harmonic
from sparker.calibration.sequential import Sequential
from sparker.calibration.store import MAX_CHUNK
from sparker.embed import IMAGES, TEXT, Embedder, choose
from sparker.engine.config import FitConfig
from sparker.engine.preprocess import Preprocess, decorrelate
from sparker.engine.widths import WidthConfig
from sparker.nulls import Scheme, Simulator, Systematic, Weights, scheme
from sparker.nulls.inputs import is_pair
from sparker.statistics.choose import AnyStatistic, as_statistic
from sparker.statistics.contract import Statistic
from sparker.system.numbers import is_number
from sparker.tables.rows import INDICATOR, MISSING_VALUES

if TYPE_CHECKING:
    from distributed import Client

Progress = bool | Callable[[int, int], None]
Pair = tuple[ArrayLike, ArrayLike]

MAX_TOYS = 10**8
"""For p-values of 1e-8; a table of more has no place in memory."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TestConfig:
    """The settings of a test, checked; ``sparker.test`` makes one of its keyword arguments."""

    __test__ = False  # not a test case, whatever pytest makes of the name

    alpha: float | None = None
    """Level of the decision: the difference is significant if p <= alpha (default: 0.05)."""
    n_toys: int = 300
    """Number of toys N; the smallest possible p-value is 1/(N+1). To be chosen beforehand: raised
    until p is small, it makes p-values too small."""
    seed: int = 0
    """Decides the toys and the fits; the same seed gives the same p-value."""
    null: str | Scheme = "permutation"
    """How toys are made, ``"permutation"`` or ``Simulator(source)``."""
    columns: Sequence[str] | None = None
    """The columns to compare, by name; all that both samples have if left out."""
    ignore: Sequence[str] = ()
    """Columns that are no part of the test."""
    keep: Sequence[str] = ()
    """Columns that look like identifiers and are to be compared all the same."""
    missing: str = INDICATOR
    """What to do where values are missing: put the median there and a feature that says so
    (``"indicator"``), leave out such rows (``"drop"``), or refuse them (``"error"``)."""
    text: str | None = None
    """The column of both samples that holds texts, which ``embed`` makes numbers of."""
    images: str | None = None
    """The column of both samples that names picture files, which ``embed`` makes numbers of; of
    folders of pictures in place of samples, nothing need be said."""
    embed: Any = None
    """What makes numbers of texts or pictures: ``"tfidf"``, ``"minilm"``, ``"wordllama"``,
    ``"efficientnet-lite0"``, ``"st:NAME"``, ``"timm:NAME"``, ``"module:function"``; a function of a
    list, or an object with ``encode``, that gives (n, d)."""
    strict: bool = False
    """Whether to refuse what looks suspicious, instead of warning of it."""
    reference_weights: Weights | str | None = None
    """What reference rows must be weighted by to have the density expected of the data: a function
    of rows; a pair, the weights of the reference rows and those that the data rows would have as
    reference rows; or, at the cost of rows, the first alone, as an array or by the name of a column
    of the reference. A ``Simulator`` of rows needs weights of its pool, too."""
    expected: float | None = None
    """The number of data rows expected; if given, the total count is tested too."""
    systematics: Sequence[Systematic] = ()
    """What is not known exactly of the reference, see ``Systematic``: what these nuisance
    parameters can explain is not called an anomaly."""
    normalisation: float | None = None
    """The relative uncertainty of ``expected``, such as 0.05."""
    at: Mapping[str, float] | None = None
    """Values at which nuisance parameters are fixed, by the names of systematics; the others are
    fitted. In the units of ``Systematic``: 0 is the nominal reference, +1 and -1 are where ``up``
    and ``down`` were made, a function is called with this value; ``"normalisation"`` in standard
    deviations of the expected count."""
    groups: Pair | str | None = None
    """The group of each reference row and of each data row, or the name of a column of both; groups
    stay together."""
    strata: Pair | str | None = None
    """The stratum of each reference row and of each data row (run, site, period, pair), or the name
    of a column of both; labels are exchanged within strata only, and only within them are rows
    compared."""
    config: FitConfig | None = None
    """The settings of the kernels and their training."""
    widths: WidthConfig | None = None
    """Which widths the kernels go through, how, and in how many steps."""
    preprocess: Preprocess = decorrelate
    """``decorrelate``, ``standardise``, ``whiten`` or ``unchanged``."""
    combine: Combination = harmonic
    """How the component tests become one test: ``harmonic``, ``minimum``, ``minimum_and_product``,
    ``product``, ``cauchy``."""
    statistic: AnyStatistic | None = None
    """Another statistic than SparKer's, of ``sparker.statistics`` or a function (rng, sample) -> t;
    it does not go with ``config`` and ``widths``, which are about SparKer's kernels."""
    explain: bool = True
    """Whether to say how many, where, which rows and which columns as well; it takes about as long
    as 16 toys or, where more are trained at once, as so many."""
    stop: Sequential | None = None
    """When to stop early, see ``Sequential``; left out, all toys are made."""
    store: str | PathLike[str] | None = None
    """A folder that keeps finished toys, so that an interrupted call can be continued."""
    progress: Progress | None = None
    """Whether to draw a progress bar on stderr (where that is a terminal, if left out), or a
    function of (done, total), called about once a second. An exception in it ends the test; toys
    that were finished are in the store."""
    chunk: int | None = None
    """Toys trained at once; as many as are good for speed and fit into memory if left out."""
    cluster: "Client | None" = field(default=None, repr=False)
    """A Dask client whose workers make the toys (``sparker[cluster]``)."""

    def __post_init__(self) -> None:
        found = self._problems()
        if found:
            raise ValueError("; ".join(found))

    def _problems(self) -> list[str]:
        found = []
        numbers: dict[str, tuple[str, dict[str, Any]]] = {
            "alpha": ("a number between 0 and 1", {"above": 0, "below": 1}),
            "n_toys": (f"a whole number from 1 to {MAX_TOYS:,}",
                       {"least": 1, "most": MAX_TOYS, "whole": True}),
            "seed": ("a whole number between 0 and 2**32 - 1",
                     {"least": 0, "below": 2**32, "whole": True}),
            "chunk": (f"a whole number from 1 to {MAX_CHUNK:,}",
                      {"least": 1, "most": MAX_CHUNK, "whole": True}),
            "expected": ("a positive number of data rows", {"above": 0}),
            "normalisation": ("a positive relative uncertainty", {"above": 0}),
        }  # fmt: skip
        for name, (wanted, bounds) in numbers.items():
            number = getattr(self, name)
            left_out = number is None and name not in ("n_toys", "seed")
            if not left_out and not is_number(number, **bounds):
                found.append(f"{name} must be {wanted}, got {number!r}")
        functions: dict[str, Any] = {"preprocess": self.preprocess, "combine": self.combine}
        for name, value in functions.items():
            if not callable(value):
                found.append(f"{name} must be a function, see TestConfig, got {value!r}")
        if self.missing not in MISSING_VALUES:
            found.append(
                f"missing must be one of {', '.join(MISSING_VALUES)}, got {self.missing!r}"
            )
        if self.text is not None and self.images is not None:
            found.append("text and images do not go together: one embedder is for one of them")
        if self.embed is None and (self.text is not None or self.images is not None):
            found.append(
                "text and images need embed, which makes numbers of them; to show them only, give "
                "them to the report, result.report(path, texts=..., images=...)"
            )
        found += self._problems_of_systematics()
        if isinstance(self.null, Simulator):
            found += self.null.problems(self.reference_weights)
        stop: Any = self.stop
        if stop is not None and not isinstance(stop, Sequential):
            found.append(f"stop must be a Sequential, got {stop!r}")
        return found

    def _problems_of_systematics(self) -> list[str]:
        given: Any = self.systematics
        if isinstance(given, Systematic) or not all(isinstance(one, Systematic) for one in given):
            return [f"systematics must be a list of Systematic, got {given!r}"]
        found = [problem for one in given for problem in one.problems()]
        names = [one.name for one in given] + ["normalisation"] * (self.normalisation is not None)
        twice = sorted({str(name) for name in names if names.count(name) > 1})
        if twice:
            found.append(f"systematics must have different names, but twice there is {twice[0]}")
        return found + self._problems_of_at(names)

    def _problems_of_at(self, names: list[str]) -> list[str]:
        at: Any = self.at
        if at is None:
            return []
        if not isinstance(at, Mapping):
            return [
                f"at must be values by the names of systematics, such as {{'jes': 1.0}}, got {at!r}"
            ]
        found = []
        for name, value in at.items():
            if name not in names:
                near = difflib.get_close_matches(str(name), names, 1)
                hint = f" (did you mean {near[0]!r}?)" if near else ""
                there = ", ".join(map(repr, names)) or "none"
                found.append(f"at names {name!r}{hint}, but the systematics are {there}")
            if not is_number(value):
                found.append(f"the value of {name!r} in at must be a finite number, got {value!r}")
        return found

    @property
    def scheme(self) -> Scheme:
        """What makes the toys."""
        return scheme(self.null)

    @property
    def embedder(self) -> Embedder | None:
        """What makes numbers of texts or pictures."""
        of = IMAGES if self.text is None else TEXT
        return None if self.embed is None else choose(self.embed, of, self.progress)

    def chosen_statistic(self) -> Statistic:
        """What is ranked."""
        return as_statistic(
            self.statistic, self.config or FitConfig(), self.widths or WidthConfig()
        )

    @property
    def features(self) -> set[str]:
        """What may not go with something else, see ``sparker.together``."""
        names = (
            "alpha",
            "expected",
            "groups",
            "strata",
            "config",
            "widths",
            "statistic",
            "stop",
            "store",
        )
        given = {name for name in (*names, "cluster") if getattr(self, name) is not None}
        given |= {"normalisation"} if self.normalisation is not None else set()
        given |= {"systematics"} if self.systematics or self.normalisation is not None else set()
        given |= {"at"} if self.at else set()
        if self.reference_weights is not None:
            given |= {"weights"}
        if is_pair(self.reference_weights):
            given |= {"data_weights"}
        if any(not isinstance(one, str | None) for one in (self.groups, self.strata)):
            given |= {"row by row"}
        embedder = self.embedder
        if embedder is not None:
            given |= {"embed", "learning embedder"} if embedder.learns else {"embed"}
        if self.null != "permutation":
            given |= {"null"}
        return given | self.scheme.features


class TestKeywords(TypedDict, total=False):
    """The same, as editors and type checkers want to know the keyword arguments."""

    n_toys: int
    seed: int
    null: str | Scheme
    columns: Sequence[str] | None
    ignore: Sequence[str]
    keep: Sequence[str]
    missing: str
    text: str | None
    images: str | None
    embed: Any
    strict: bool
    reference_weights: Weights | str | None
    expected: float | None
    systematics: Sequence[Systematic]
    normalisation: float | None
    at: Mapping[str, float] | None
    groups: Pair | str | None
    strata: Pair | str | None
    config: FitConfig | None
    widths: WidthConfig | None
    preprocess: Preprocess
    combine: Combination
    statistic: AnyStatistic | None
    explain: bool
    stop: Sequential | None
    store: str | PathLike[str] | None
    progress: Progress | None
    chunk: int | None
    cluster: "Client | None"


class DecidedKeywords(TestKeywords, total=False):
    """Those of calls without a level of their own."""

    alpha: float | None


def from_keywords(keywords: dict[str, Any]) -> TestConfig:
    """Make a ``TestConfig`` of keyword arguments; an unknown name gets a suggestion."""
    known = [each.name for each in fields(TestConfig)]
    unknown = [name for name in keywords if name not in known]
    if unknown:
        hints = []
        for name in unknown:
            near = difflib.get_close_matches(name, known, 1)
            hints.append(f"{name!r}" + (f" (did you mean {near[0]!r}?)" if near else ""))
        raise TypeError(f"there is no setting {', '.join(hints)}; settings are {', '.join(known)}")
    return TestConfig(**keywords)


def defaults() -> dict[str, Any]:
    """The names of all settings, and what they are if left out."""
    return {each.name: each.default for each in fields(TestConfig) if each.default is not MISSING}
