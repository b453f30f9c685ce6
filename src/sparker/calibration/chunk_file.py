"""What the file of a chunk of toys holds: the test it is of, what was measured, who made it."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from sparker.engine.ensemble import Ensemble
from sparker.statistics.contract import COUNTED, Chunk
from sparker.system import archive

KIND = "chunk of toys"
TEST = "test"
COUNTS = "score_counts"
OBSERVED = "observed_"
"""Before the names of the models' arrays: only those of the observed experiment are kept."""

N_NAMED = 5
"""Problems that are told one by one."""


def write_chunk(path: Path, chunk: Chunk, test: str, made_by: dict[str, str]) -> None:
    """Write a finished chunk of the test with this digest."""
    numbers, statistics, models, counts = chunk
    contents = {"numbers": np.asarray(numbers, np.int64), "statistics": np.asarray(statistics)}
    if counts is not None:
        contents[COUNTS] = counts
    if models is not None:
        contents |= {f"{OBSERVED}{name}": array for name, array in models._asdict().items()}
    archive.write(path, {"kind": KIND, TEST: test, "made_by": made_by}, contents)


def read_chunks(paths: Iterable[Path], test: str) -> list[Chunk]:
    """The chunks in these files, if all of them are whole, of this test and of one mind.

    One error names all files that are not. A file that is gone by now is left out.
    """
    found: list[Chunk] = []
    first: dict[int, tuple[Path, np.ndarray]] = {}  # where each experiment was seen first
    problems = []
    for path in paths:
        try:
            chunk = _read_chunk(path, test)
        except FileNotFoundError:
            continue
        except OSError as error:
            problems.append(f"{path} cannot be read: {error.strerror}")
            continue
        except ValueError as error:
            problems.append(str(error))
            continue
        if found and _shapes(chunk) != _shapes(found[0]):
            problems.append(f"{path} has other statistics than {next(iter(first.values()))[0]}")
            continue
        found.append(chunk)
        for row, number in enumerate(chunk.numbers):
            other, known = first.setdefault(number, (path, chunk.statistics[row]))
            if other != path and not np.array_equal(known, chunk.statistics[row], equal_nan=True):
                problems.append(f"{path} and {other} contradict each other in experiment {number}")
                break
    if problems:
        more = f"; and {len(problems) - N_NAMED} more" if len(problems) > N_NAMED else ""
        it, its = ("it", "its") if len(problems) == 1 else ("them", "their")
        raise ValueError(
            f"{'; '.join(problems[:N_NAMED])}{more}; delete {it} and {its} toys are made anew"
        )
    return found


def _read_chunk(path: Path, test: str) -> Chunk:
    header, found = archive.read(path, KIND)
    if header.get(TEST) != test:
        raise ValueError(f"{path} holds toys of another test")
    missing = {"numbers", "statistics"} - found.keys()
    if missing:
        raise ValueError(f"{path} lacks {sorted(missing)}")
    models = None
    parts = [f"{OBSERVED}{name}" for name in Ensemble._fields]
    if found.keys() & {*parts}:
        if not found.keys() >= {*parts}:
            raise ValueError(f"{path} has a part of the models only")
        models = Ensemble(*(found[name] for name in parts))
    numbers, measured = found["numbers"], (found["statistics"], models, found.get(COUNTS))
    if not _fits_together(numbers, *measured):
        raise ValueError(f"{path} has parts that do not belong together")
    return Chunk(numbers.tolist(), *measured)


def _fits_together(
    numbers: np.ndarray, statistics: np.ndarray, models: Ensemble | None, counts: np.ndarray | None
) -> bool:
    """Whether kinds and shapes are those of a chunk."""
    numbered = numbers.dtype.kind == "i" and numbers.ndim == 1 and len(numbers) > 0
    if not numbered or min(numbers) < 0 or len(np.unique(numbers)) < len(numbers):
        return False
    if statistics.dtype.kind != "f" or statistics.ndim != 2 or len(statistics) != len(numbers):
        return False
    if counts is None:
        return models is None
    if counts.dtype.kind != "f" or counts.ndim != 3 or len(counts) != np.sum(numbers <= COUNTED):
        return False
    return models is None or (0 in numbers and models_fit(models, counts.shape[1]))


def models_fit(models: Ensemble, n_widths: int) -> bool:
    """Whether they are kernels at so many widths, all of their numbers finite."""
    mu, a, sigma = map(np.asarray, models)
    return (
        mu.ndim == 3
        and a.shape == mu.shape[:2]
        and sigma.shape == (n_widths,) == mu.shape[:1]
        and all(array.dtype.kind == "f" and np.isfinite(array).all() for array in (mu, a, sigma))
    )


def _shapes(chunk: Chunk) -> tuple[tuple[int, ...], ...]:
    counts = chunk.score_counts
    return chunk.statistics.shape[1:], () if counts is None else counts.shape[1:]
