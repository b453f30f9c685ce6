"""Whether real columns are taken for identifiers, and what is said of rows of real tables.

    python -m experiments.columns.run --data DIR [--samples 20] [--output DIR]

From each table samples of 2,000 reference and 500 data rows are drawn: random rows, random rows
with 5 % anomalies among the data, and neighbouring rows in the order of the table, as users' files
have them. No column may be taken for an identifier, not even if both files are sorted
by it, or if it is rounded to whole numbers. Identifiers that are planted beside the rows must be
found. Cautions are counted: of random rows only what is true of the table itself may be said.
Writes ``result.json``; two minutes on one core.
"""

import argparse
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from experiments import record
from experiments.answers.problems import OTHER_FILE

from sparker.system.versions import versions
from sparker.tables.checks import cautions
from sparker.tables.identifiers import identifier

RESULT = Path(__file__).parent
N_REFERENCE, N_DATA, SHARE = 2000, 500, 0.05
WIDTH = 50_000  # whole numbers as dense as this repeat about 40 times in 2,000 rows
DANTE = "dante_anomalies_machine"
KINDS = ("random rows", "random rows, anomalies", "rows in order")


class Pool(NamedTuple):
    """A table in its own order, and rows that do not belong to it."""

    rows: np.ndarray
    anomalies: np.ndarray


class Sample(NamedTuple):
    """Rows of the table by their numbers, and as they are."""

    numbers: tuple[np.ndarray, np.ndarray]  # of reference and data
    rows: tuple[np.ndarray, np.ndarray]


def pools(folder: Path) -> dict[str, Pool]:
    """Every table of the folder."""
    found = {}
    for path in sorted(folder.glob("*.npz")):
        with np.load(path, allow_pickle=False) as file:
            if "reference_pool" not in file.files:
                continue
            rows = file["reference_pool"].astype(np.float32)
        other = DANTE if path.stem.startswith("dante") else OTHER_FILE.get(path.stem, path.stem)
        with np.load(folder / f"{other}.npz", allow_pickle=False) as file:
            kinds = [file[key] for key in file.files if key.startswith("anomaly")]
        kinds = [kind for kind in kinds if kind.shape[1:] == rows.shape[1:]]
        found[path.stem] = Pool(rows, np.concatenate(kinds).astype(np.float32))
    return found


def at_random(pool: Pool, rng: np.random.Generator, share: float) -> Sample:
    """Rows drawn at random, some of the data replaced by anomalies."""
    turn = rng.permutation(len(pool.rows))
    reference, data = turn[N_DATA : N_DATA + N_REFERENCE], turn[:N_DATA]
    rows = pool.rows[data].copy()
    planted = rng.random(N_DATA) < share
    rows[planted] = rng.choice(pool.anomalies, planted.sum(), replace=False)
    return Sample((reference, data), (pool.rows[reference], rows))


def in_order(pool: Pool, rng: np.random.Generator) -> Sample:
    """Neighbouring rows: the data follow the reference."""
    begin = rng.integers(len(pool.rows) - N_REFERENCE - N_DATA + 1)
    reference = begin + np.arange(N_REFERENCE)
    data = reference[-1] + 1 + np.arange(N_DATA)
    return Sample((reference, data), (pool.rows[reference], pool.rows[data]))


def whole(values: np.ndarray) -> np.ndarray:
    """Rounded to whole numbers, and sorted."""
    return np.sort(np.rint(values.astype(float) * (WIDTH / max(np.ptp(values), 1e-30))))


SHAPES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "as they are": lambda values: values,
    "sorted": np.sort,
    "whole and sorted": whole,
}


def taken(sample: Sample, shape: Callable[[np.ndarray], np.ndarray]) -> int:
    """Columns taken for identifiers, though they are none."""
    columns = zip(*(rows.T for rows in sample.rows), strict=True)
    return sum(identifier("x", [shape(one), shape(other)]) is not None for one, other in columns)


def texts(numbers: np.ndarray) -> np.ndarray:
    """A UUID for each row of the table."""
    keys = [
        uuid.UUID(int=int(i + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128) for i in numbers
    ]
    return np.array([str(key) for key in keys], object)


def planted(sample: Sample, rng: np.random.Generator) -> dict[str, bool]:
    """Which identifiers are found, planted beside the rows of a sample."""
    from_0 = [np.arange(N_REFERENCE) * 1.0, np.arange(N_DATA) * 1.0]
    going_on = [from_0[0], N_REFERENCE + from_0[1]]
    tenth = [np.sort(rng.permutation(10 * len(x))[: len(x)]) * 1.0 for x in from_0]
    keys = [texts(numbers) for numbers in sample.numbers]
    clock = [np.datetime64("2024-01-01T00:00:00") + 37 * x.astype(int) for x in going_on]
    columns = {
        "event_id, going on": ("event_id", going_on),
        "event_id, row of the table": ("event_id", [n * 1.0 for n in sample.numbers]),
        "row numbers from 0": ("Unnamed: 0", from_0),
        "row numbers from 0, no name": ("", from_0),
        "every tenth event, no telling name": ("n", tenth),
        "uuids": ("key", keys),
        "uuids, no name": ("", keys),
        "times": ("recorded", clock),
        "times, shuffled": ("recorded", [rng.permutation(x) for x in clock]),
        "times as texts": ("recorded", [x.astype(str).astype(object) for x in clock]),
        "seconds since 1970": ("timestamp", [1.7e9 + 36.5 * x for x in going_on]),
    }
    return {kind: identifier(name, parts) is not None for kind, (name, parts) in columns.items()}


def measure(pool: Pool, samples: int) -> record.Result:
    """All of it, of one table."""
    columns, looked_at, found = Counter[str](), Counter[str](), Counter[str]()
    said: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    examples: dict[str, str] = {}
    for number in range(samples):
        rng = np.random.default_rng(number)
        for kind in KINDS:
            share = SHARE if "anomalies" in kind else 0.0
            sample = in_order(pool, rng) if "order" in kind else at_random(pool, rng, share)
            # Sorted columns of samples of the same rows are much the same: every fifth will do.
            for shape, of in list(SHAPES.items())[: 1 if number % 5 else None]:
                columns[shape] += taken(sample, of)
                looked_at[shape] += pool.rows.shape[1]
            found.update(planted(sample, rng))
            cautious = cautions(*sample.rows, ())
            said[kind].update({caution.code for caution in cautious})
            examples |= {f"{kind}: {caution.code}": caution.text for caution in cautious}
    return {
        "rows": len(pool.rows),
        "columns": pool.rows.shape[1],
        "taken for identifiers": {shape: [columns[shape], n] for shape, n in looked_at.items()},
        "planted identifiers found": {kind: [found[kind], samples * len(KINDS)] for kind in found},
        "samples with cautions": {kind: dict(codes) for kind, codes in said.items()},
        "examples": examples,
    }


def main(arguments: Sequence[str] | None = None) -> Path:
    """Measure, write and return the path."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the real tables")
    parser.add_argument("--samples", type=int, default=20, help="of each kind and table")
    parser.add_argument("--output", type=Path, default=RESULT, help="a folder")
    options = parser.parse_args(arguments)
    began, tables = time.perf_counter(), {}
    for name, pool in pools(options.data).items():
        tables[name] = measure(pool, options.samples)
        print(name, tables[name]["samples with cautions"], flush=True)
    result = {
        "command": "python -m experiments.columns.run --data DIR",
        "versions": versions(),
        "seconds": round(time.perf_counter() - began, 1),
        "settings": {"n_reference": N_REFERENCE, "n_data": N_DATA, "samples": options.samples},
        "tables": tables,
    }
    path = options.output / "result.json"
    path.write_text(record.as_text(result))
    return path


if __name__ == "__main__":
    main()
