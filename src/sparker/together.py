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

OF_ROWS = "nuisance parameters change the odds of single rows"

CONFLICTS: dict[frozenset[str], str] = {
    frozenset({"simulator", "learning embedder"}): LEARNS,
    frozenset({"groups", "expected"}): "rows that belong together do not count as Poisson",
    frozenset({"groups", "weights"}): "rows that belong together carry no weights of their own",
    frozenset({"strata", "expected"}): "within strata the numbers of data rows are as observed",
    frozenset({"systematics", "groups"}): OF_ROWS,
    frozenset({"systematics", "strata"}): OF_ROWS,
    frozenset({"systematics", "simulator"}): "its toys know nothing of nuisance parameters",
    frozenset({"simulator", "groups"}): AS_THEY_COME,
    frozenset({"simulator", "strata"}): AS_THEY_COME,
    frozenset({"simulator", "group_rows"}): AS_THEY_COME,
    **{
        frozenset({"statistic", name}): OF_KERNELS
        for name in ("config", "kernels", "clip", "annealed", "widths")
    },
    **{frozenset({"some toys", name}): NO_VERDICT for name in OF_THE_VERDICT},
    **{
        frozenset({"monitor", name}): NO_DATA
        for name in ("row by row", "simulator", "data_weights", "systematics", "store", "cluster")
    },
    **{
        frozenset({"many", name}): OF_ONE
        for name in (
            "row by row",
            "data_weights",
            "some toys",
            "text",
            "images",
            "observables",
            "rows",
            "save",
            "tail",
        )
    },
    frozenset(
        {"many", "alpha"}
    ): "at one level for each, some of many samples are called anomalous "
    "by chance; --fdr is for all of them together",
    **{
        frozenset({name, "embed"}): "texts and pictures are embedded for one test of two samples; "
        "make numbers of them beforehand"
        for name in ("many", "closest", "anytime", "systematics")
    },
    **{
        frozenset({name, "systematics"}): "nuisance parameters are fitted to one sample"
        for name in ("many", "closest", "anytime")
    },
    frozenset({"power", "simulator weights"}): ANEW,
    **{
        frozenset({"closest", name}): "a distance is no test, and has no toys"
        for name in ("null", "stop", "store", "cluster")
    },
    **{
        frozenset({"closest", name}): "for a distance, rows are split at random, one by one"
        for name in ("groups", "strata", "expected")
    },
    frozenset({"closest", "statistic"}): "a distance is that of SparKer's kernels",
    **{
        frozenset({"anytime", name}): NO_TOYS
        for name in ("null", "config", "widths", "statistic", "stop", "store", "cluster")
    },
    **{
        frozenset({"anytime", name}): ROW_BY_ROW
        for name in ("groups", "strata", "weights", "data_weights", "expected")
    },
    **{
        frozenset({"power", name}): ANEW
        for name in ("groups", "strata", "weights", "store", "systematics")
    },
    frozenset({"power", "expected"}): "a power study expects n_data; with poisson=True it lets "
    "samples fluctuate around that",
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
