"""Small tests of the whole package, and their outcomes in a file, to see what a change alters.

``python -m tests.golden [NAME...]`` compares with ``golden.json`` and prints the differences.
``python -m tests.golden --record [NAME...]`` writes the outcomes there, of all tests or of these:
only where other numbers are meant, and then with the reason in the commit message. Of the package,
only ``sparker.test`` and (in ``outcome`` alone) its result are used.
"""

import argparse
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

import sparker

FILE = Path(__file__).with_suffix(".json")

CLOSED, TRAINED = 1e-5, 1e-3
"""Largest differences of statistics in closed form and of those of kernels, as a part of the
largest value of the family. Other instructions of the CPU change them by 1e-6 and 1e-5."""

MIN_CORRELATION, MIN_COMBINED = 0.999, 0.98
"""Rank correlation of a family of the kernels, and of the combined statistic of all experiments,
from which larger differences do not matter."""

N_TOP, MIN_SHARED = 10, 8
"""Rows with the highest rank that are kept, and how many of them must be the same."""

N_REGIONS = 3
RULES, COLUMNS = 0.01, 0.02
"""Largest difference of a number in a rule, and of the p-value of a column."""

# The samples and the tests. They share numbers of rows, toys and kernels, which saves compiling.

N_REFERENCE, N_DATA, N_PLANTED, N_TOYS = 240, 60, 9, 19


def population(rng: np.random.Generator, n: int) -> np.ndarray:  # (n, 2)
    """Draw two features, skewed and correlated."""
    x = rng.normal(size=(n, 2))
    return np.column_stack([x[:, 0], 0.6 * x[:, 0] + np.exp(0.5 * x[:, 1])])


RNG = np.random.default_rng(11)
REFERENCE, DATA = population(RNG, N_REFERENCE), population(RNG, N_DATA)
DATA[:N_PLANTED] = [1.5, 4.0] + 0.3 * RNG.normal(size=(N_PLANTED, 2))
POOL, FAINT = population(RNG, N_REFERENCE), population(RNG, N_DATA)
FAINT[:5] = DATA[:5]
WEIGHTS = tuple(RNG.choice([0.5, 1.0, 1.5], n) for n in (N_REFERENCE, N_DATA))


def quick(data: Any = DATA, reference: Any = REFERENCE, **settings: Any) -> Any:
    """Run a test with few kernels, steps and widths."""
    few = {
        "n_toys": N_TOYS,
        "config": sparker.FitConfig(n_kernels=3, n_candidates=64),
        "widths": sparker.WidthConfig(steps=30, n_widths=3),
    }
    return sparker.test(reference, data, **{**few, **settings})


def as_mixed_table(rows: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Make a table of a number with gaps, a number and a category."""
    return {
        "x": np.where(rng.random(len(rows)) < 0.1, np.nan, rows[:, 0]),
        "y": rows[:, 1],
        "colour": np.where(rows[:, 1] > 2, "red", rng.choice(["blue", "green"], len(rows))),
    }


TESTS: dict[str, Callable[[], Any]] = {
    "default": lambda: sparker.test(REFERENCE, DATA, n_toys=N_TOYS),
    "groups": lambda: quick(
        groups=tuple(f + np.arange(n) // 4 for f, n in ((0, N_REFERENCE), (999, N_DATA)))
    ),
    "strata": lambda: quick(strata=tuple(np.arange(n) % 3 for n in (N_REFERENCE, N_DATA))),
    "reference_weights": lambda: quick(reference_weights=WEIGHTS[0]),
    "weights_of_both": lambda: quick(FAINT, reference_weights=WEIGHTS),
    "weight_function": lambda: quick(reference_weights=lambda rows: np.exp(0.3 * rows[:, 0])),
    "counts": lambda: quick(FAINT, expected=0.9 * N_DATA),
    "simulator": lambda: quick(FAINT, null=sparker.Simulator(population)),
    "pool": lambda: quick(FAINT, null=sparker.Simulator(POOL)),
    "early_stopping": lambda: quick(FAINT, stop=sparker.Sequential(exceedances=1, first=10)),
    "systematic": lambda: quick(
        systematics=[sparker.Systematic("scale", function=lambda rows, nu: rows * (1 + 0.1 * nu))]
    ),
    "mmd": lambda: sparker.test(REFERENCE, DATA, n_toys=N_TOYS, statistic=sparker.statistics.MMD()),
    "mixed_table": lambda: quick(
        as_mixed_table(DATA, np.random.default_rng(1)),
        as_mixed_table(REFERENCE, np.random.default_rng(2)),
    ),
}


def outcome(result: Any) -> dict[str, Any]:
    """Return the plain numbers of a result; nothing else here depends on how it is made."""
    components = [(one.family, float(one.scale)) for one in result.component_tests]
    table = np.vstack([result.statistics, result.null_statistics])  # (1 + B, K)
    regions, columns = result.regions(), result.columns()
    return {
        "statistics": [
            {
                "family": family,
                "scale": rounded(scale),
                "trained": result.models is not None and scale in result.widths,
                "values": [rounded(value) for value in values],
            }
            for (family, scale), values in zip(components, table.T, strict=True)
        ],
        "combined": [rounded(v) for v in (result.combined_score, *result.null_combined_score)],
        "p_value": rounded(result.p_value),
        "toys_compared": int(result.n_toys),
        "p_by_family": [rounded(p) for p in result.p_by_family],
        "at_least": [result.at_least, result.missing_at_least],
        "top_rows": [int(row) for row in result.rows()["row"][:N_TOP]],
        "regions": [
            {"rule": str(rule), "data_rows": int(n)}
            for rule, n in zip(regions["rule"], regions["data_rows"], strict=True)
        ][:N_REGIONS],
        "columns": {
            str(name): rounded(p)
            for name, p in zip(columns["column"], columns["p_value"], strict=True)
        },
    }


def rounded(value: float) -> float:
    """Round to seven digits."""
    return float(f"{value:.7g}")


class Difference(NamedTuple):
    """What was compared, how much it differs, and whether that is too much."""

    what: str
    size: str
    too_much: bool


def differences(kept: dict[str, Any], found: dict[str, Any]) -> list[Difference]:
    """Compare two outcomes; components, families and columns by their order, not their names."""
    few = 2 / len(kept["statistics"][0]["values"])
    by_family = [np.array(one["p_by_family"]) for one in (kept, found)]
    columns = [np.array(list(one["columns"].values())) for one in (kept, found)]
    n_top, n_shared = len(kept["top_rows"]), len({*kept["top_rows"]} & {*found["top_rows"]})
    return [
        *of_statistics(kept["statistics"], found["statistics"]),
        of_combined(kept["combined"], found["combined"]),
        within("p", kept["p_value"], found["p_value"], few),
        within("p of families", *by_family, few),
        within("toys compared", kept["toys_compared"], found["toys_compared"], 1),
        *(
            within(what, *map(number, pair), 1)
            for what, *pair in zip(
                ("at least", "missing"), kept["at_least"], found["at_least"], strict=True
            )
        ),
        Difference("top rows", f"{n_shared}/{n_top}", n_shared < min(MIN_SHARED, n_top)),
        within("rules", numbers_of(kept["regions"]), numbers_of(found["regions"]), RULES),
        within("p of columns", *columns, COLUMNS),
    ]


def of_statistics(kept: list[dict[str, Any]], found: list[dict[str, Any]]) -> list[Difference]:
    """Compare the tables, each family with its own largest value; of kernels, also the ranks."""
    shapes = [family_numbers(one) for one in (kept, found)]
    if shapes[0] != shapes[1]:
        sizes = [f"{len(one)} in {len(set(one))} families" for one in shapes]
        return [Difference("components", " -> ".join(sizes), True)]
    scales = [np.array([one["scale"] for one in each]) for each in (kept, found)]
    tables = [np.array([one["values"] for one in each]) for each in (kept, found)]  # (K, 1 + B)
    n = min(table.shape[1] for table in tables)  # one that stops early may have a toy more
    worst = {"scales": within("scales", *scales, CLOSED * np.abs(scales[0]).max())}
    for family in sorted(set(shapes[0])):
        rows = [i for i, each in enumerate(shapes[0]) if each == family]
        one, other = (table[rows, :n] for table in tables)
        size = relative(one, other)
        what, too_much = "closed form", not size <= CLOSED
        if kept[rows[0]]["trained"]:
            what = "kernels"
            too_much = not (size <= TRAINED or correlation(one, other) > MIN_CORRELATION)
        if what not in worst or (too_much, size) > (worst[what].too_much, float(worst[what].size)):
            worst[what] = Difference(what, f"{size:.1g}", too_much)
    return list(worst.values())


def of_combined(kept: list[float], found: list[float]) -> Difference:
    """Compare what the statistics of each experiment are combined to; p-values alone are coarse."""
    n = min(len(kept), len(found))
    one, other = np.array(kept[:n]), np.array(found[:n])
    size = relative(one, other)
    too_much = not (size <= CLOSED or correlation(one, other) > MIN_COMBINED)
    return Difference("combined", f"{size:.1g}", too_much)


def relative(kept: np.ndarray, found: np.ndarray) -> float:
    """Return the largest difference as a part of the largest value."""
    return float(np.abs(kept - found).max() / max(np.abs(kept).max(), 1e-300))


def correlation(kept: np.ndarray, found: np.ndarray) -> float:
    """Return the rank correlation of all values."""
    return float(np.corrcoef(rankdata(kept), rankdata(found))[0, 1])


def family_numbers(components: list[dict[str, Any]]) -> list[int]:  # (K,)
    """Return the family of each component as a number."""
    names = list(dict.fromkeys(one["family"] for one in components))
    return [names.index(one["family"]) for one in components]


def numbers_of(regions: list[dict[str, Any]]) -> np.ndarray:
    """Return all numbers in the rules, and those of rows; the words of a rule may change."""
    texts = (f"{one['rule']} {one['data_rows']}" for one in regions)
    return np.array([float(n) for text in texts for n in re.findall(r"-?\d+\.?\d*", text)])


def number(value: float | None) -> float:
    """Return a missing value as a number far from any other."""
    return -1e9 if value is None else value


def within(what: str, kept: Any, found: Any, limit: float) -> Difference:
    """Compare numbers by their largest difference."""
    if np.shape(kept) != np.shape(found):
        return Difference(what, f"{np.size(kept)} -> {np.size(found)}", True)
    size = float(np.max(np.abs(np.subtract(kept, found)), initial=0))
    return Difference(what, f"{size:.1g}", not size <= limit + 1e-9)


def read() -> dict[str, Any]:
    """Read the recorded outcomes, by name of the test."""
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def write(outcomes: dict[str, Any]) -> None:
    """Write outcomes in the order of the tests, each list in a line."""
    ordered = {name: outcomes[name] for name in TESTS if name in outcomes}
    text = re.sub(
        r"\[[^][{}]*\]", lambda found: " ".join(found[0].split()), json.dumps(ordered, indent=1)
    )
    FILE.write_text(text + "\n")


def main() -> int:
    """Compare or record; 1 if something differs too much."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(TESTS)}")
    parser.add_argument("--record", action="store_true", help="write outcomes instead")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(TESTS):
        parser.error(f"there is no test {', '.join(sorted(unknown))}; tests are {', '.join(TESTS)}")
    kept, wrong = read(), 0
    print("largest differences; ! where they are too large")
    for name in asked.names or TESTS:
        began = time.perf_counter()
        found = outcome(TESTS[name]())
        said = [f"{name:18}{time.perf_counter() - began:5.1f} s"]
        if name in kept:
            compared = differences(kept[name], found)
            said += [f"{'!' * one.too_much}{one.what} {one.size}" for one in compared]
            wrong += any(one.too_much for one in compared)
        else:
            said, wrong = [*said, "!not recorded"], wrong + 1
        print(*said, sep="  ", flush=True)
        kept[name] = found
    if asked.record:
        write(kept)
        return 0
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
