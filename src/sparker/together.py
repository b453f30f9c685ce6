"""What goes with what: one table, asked by the library and by the command line.

Features have a name each, and are spoken of as the caller knows them: as an argument of the
library, or as an option of a command.
"""

from collections.abc import Iterable
from typing import NamedTuple


class Feature(NamedTuple):
    """How it is called."""

    argument: str
    option: str


OF_THE_VERDICT = (
    "stop", "alpha", "tail", "text", "images", "observables", "report", "rows", "save", "json",
)  # fmt: skip

FEATURES = {
    "groups": Feature("groups", "--groups"),
    "group_rows": Feature("Permutation(group_rows=...)", "--group-rows"),
    "strata": Feature("strata", "--strata"),
    "weights": Feature("reference_weights", "--weights"),
    "data_weights": Feature("reference_weights of the data rows", "--data-weights"),
    "expected": Feature("expected", "--expected"),
    "systematics": Feature("systematics", "--systematic"),
    "normalisation": Feature("normalisation", "--normalisation"),
    "at": Feature("at", "--at"),
    "null": Feature("null", "--null"),
    "simulator": Feature("null=Simulator(...)", "--null simulator"),
    "simulator by name": Feature("'simulator'", "--null simulator"),
    "pool": Feature("the rows of a Simulator", "--pool"),
    "pool_unweighted": Feature("pool_weights=1", "--pool-unweighted"),
    "simulator weights": Feature("weights of a Simulator", "--weights"),
    "statistic": Feature("another statistic", "--statistic"),
    "config": Feature("config", "--config"),
    "kernels": Feature("config", "--kernels"),
    "clip": Feature("config", "--clip"),
    "annealed": Feature("config", "--annealed"),
    "widths": Feature("widths", "--steps"),
    "embed": Feature("embed", "--embed"),
    "learning embedder": Feature("embed='tfidf'", "--embed tfidf"),
    "cluster": Feature("cluster", "--scheduler"),
    "store": Feature("store", "--store"),
    **{name: Feature(name, f"--{name}") for name in OF_THE_VERDICT},
    "some toys": Feature("run_toys", "--only"),
    "row by row": Feature("groups or strata row by row", "groups of one sample"),
    "fdr": Feature("fdr", "--fdr"),
    "reports": Feature("on_result", "--reports"),
    "many": Feature("many samples", "several DATA"),
    "closest": Feature("a distance", "sparker closest"),
    "monitor": Feature("a monitor", "sparker calibrate"),
    "anytime": Feature("an anytime monitor", "--anytime"),
    "power": Feature("a power study", "sparker power"),
}

AS_THEY_COME = "a simulator draws rows as they come"
OF_KERNELS = "only SparKer's own statistic has kernels"
NO_VERDICT = "some of the toys reach no verdict: merge all parts first"
NO_DATA = "a monitor's batches are still to come, and its file holds all of its settings"
LEARNS = (
    "what it learns must come from both samples alike, or it tells apart what does not differ: fit "
    "it on rows that are used nowhere else, embed=sparker.embed.Tfidf.fit(texts), or take one that "
    "need not learn, such as minilm"
)
OF_ONE = "it belongs to a single sample"
NO_TOYS = "it bets, and makes no toys"
ROW_BY_ROW = "it bets on single rows, each of which counts as one"
ANEW = "the samples of a power study are drawn anew"
AROUND = "a power study expects n_data; with poisson=True it lets samples fluctuate around that"
NOT_EACH = (
    "at one level for each, some of many samples are called anomalous by chance; --fdr is for all "
    "of them together"
)
BEFOREHAND = (
    "texts and pictures are embedded for one test of two samples; make numbers of them beforehand"
)
FITTED_TO_ONE = "nuisance parameters are fitted to one sample"
ONE_BY_ONE = "for a distance, rows are split at random, one by one"

OF_ROWS = "nuisance parameters change the odds of single rows"

CONFLICTS: dict[frozenset[str], str] = {
    frozenset({one, other}): why
    for one, others, why in (
        ("simulator", ["learning embedder"], LEARNS),
        ("groups", ["expected"], "rows that belong together do not count as Poisson"),
        ("groups", ["weights"], "rows that belong together carry no weights of their own"),
        ("strata", ["expected"], "within strata the numbers of data rows are as observed"),
        ("systematics", ["groups", "strata"], OF_ROWS),
        ("systematics", ["simulator"], "its toys know nothing of nuisance parameters"),
        ("simulator", ["groups", "strata", "group_rows"], AS_THEY_COME),
        ("statistic", ["config", "kernels", "clip", "annealed", "widths"], OF_KERNELS),
        ("some toys", OF_THE_VERDICT, NO_VERDICT),
        ("monitor", ["row by row", "simulator", "data_weights", "systematics"], NO_DATA),
        ("monitor", ["store", "cluster"], NO_DATA),
        ("many", ["row by row", "data_weights", "some toys", "text", "images"], OF_ONE),
        ("many", ["observables", "rows", "save", "tail"], OF_ONE),
        ("many", ["alpha"], NOT_EACH),
        ("embed", ["many", "closest", "anytime", "systematics"], BEFOREHAND),
        ("systematics", ["many", "closest", "anytime"], FITTED_TO_ONE),
        ("power", ["simulator weights"], ANEW),
        (
            "closest",
            ["alpha", "null", "stop", "store", "cluster"],
            "a distance is no test, and has no toys",
        ),
        ("closest", ["groups", "strata", "expected"], ONE_BY_ONE),
        ("closest", ["statistic"], "a distance is that of SparKer's kernels"),
        ("anytime", ["null", "config", "widths", "statistic", "stop", "store", "cluster"], NO_TOYS),
        ("anytime", ["groups", "strata", "weights", "data_weights", "expected"], ROW_BY_ROW),
        ("power", ["groups", "strata", "weights", "store", "systematics"], ANEW),
        ("power", ["expected"], AROUND),
    )
    for other in others
}
"""Sets of features that do not go together, and why."""

NEEDS: dict[tuple[str, str], str] = {
    ("normalisation", "expected"): "it is the uncertainty of that",
    ("at", "systematics"): "it fixes the values of nuisance parameters",
    ("group_rows", "groups"): "it says how many rows of a group take part",
    ("data_weights", "weights"): "weights of both samples are compared",
    ("pool", "simulator"): "its rows are what the simulator gives",
    ("pool_unweighted", "pool"): "it says that its rows need no weights",
    ("simulator by name", "pool"): "its rows are what the simulator gives",
    ("images", "report"): "they are shown there",
    ("observables", "report"): "they are shown there",
    ("some toys", "store"): "finished toys are kept there, to be merged",
    ("fdr", "many"): "it is the share of chance findings among several",
    ("reports", "many"): "of a single sample --report writes one",
}
"""Features that are of no use without another one, and why."""


FRAMES = ("some toys", "many", "closest", "monitor", "anytime", "power")
"""What is not an option of the call, but the call itself."""


def problems(given: Iterable[str], *, as_options: bool = False) -> list[str]:
    """All that is wrong with these features together, in words."""
    there = frozenset(given)

    def name(feature: str) -> str:
        known = FEATURES[feature]
        return known.option if as_options else known.argument

    found = []
    for both, why in CONFLICTS.items():
        if both <= there:
            first, *others = [feature for feature in FEATURES if feature in both]
            last = others[-1]
            remedy = f"leave {name(first)} out" if last in FRAMES else "leave one of them out"
            names = " and ".join(name(feature) for feature in others)
            found.append(f"{name(first)} does not go with {names}, since {why}; {remedy}")
    for (feature, needed), why in NEEDS.items():
        if feature in there and needed not in there:
            found.append(f"{name(feature)} needs {name(needed)}: {why}; give both or none")
    return found


def check(given: Iterable[str], *, as_options: bool = False) -> None:
    """Refuse features that do not go together, all of them at once."""
    found = problems(given, as_options=as_options)
    if found:
        raise ValueError(". ".join(found))
