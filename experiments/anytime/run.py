"""False alarms of streams without a change, and the delay until a change is detected.

    python -m experiments.anytime.run [--processes 2] [--seconds 2400] [--only PATTERN]

* never: streams of 10,000 batches without change, each with a reference of its own; did the wealth
  ever reach 20, for an alarm at alpha = 5 %?
* shorter: the same for 1,000 batches, more streams.
* change: the same for changes, with alpha = 1 %: the number of looks until the first alarm.
* delay: 2 % or 5 % of the rows become anomalous after 10 of 50 batches of 250 rows; how many
  batches later is there an alarm, at a chance of 5 % of a false one in all 50? Beside it a CUSUM on
  the column that shows most, whose threshold is that of simulated streams. (alibi-detect's online
  MMD: ``online_mmd``.)

Adds to ``result.json``: a run that is interrupted goes on where it was. ``python -m
experiments.anytime.tables`` writes the tables of README.md and docs/anytime.md.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from experiments import units
from experiments.anytime import streams
from experiments.anytime.streams import BATCH, HORIZON, N_FEATURES, QUIET, QUIET_ROWS

import sparker

RESULT = Path(__file__).parent / "result.json"
ALPHA, CHANGE_ALPHA = 0.05, 0.01
N_CHANGE_LOOKS, N_SHORTER_LOOKS = 2000, 1000
MOST = 1000
SETTINGS = {
    "alpha": ALPHA, "change_alpha": CHANGE_ALPHA, "quiet_looks": streams.N_QUIET_LOOKS,
    "quiet_rows": QUIET_ROWS, "change_looks": N_CHANGE_LOOKS,
    "batch": BATCH, "features": N_FEATURES, "reference": streams.N_REFERENCE,
    "quiet": QUIET, "horizon": HORIZON,
}  # fmt: skip


def never(population: str, number: int) -> dict[str, Any]:
    """One stream without change, for any difference."""
    return quiet(population, number, streams.N_QUIET_LOOKS, change=False, wealth=1 / ALPHA)


def shorter(population: str, number: int) -> dict[str, Any]:
    """The same for fewer looks, with other rows."""
    return quiet(population, MOST + number, N_SHORTER_LOOKS, change=False, wealth=1 / ALPHA)


def change(population: str, number: int) -> dict[str, Any]:
    """One stream without change, for changes."""
    return quiet(population, number, N_CHANGE_LOOKS, change=True, wealth=2 / CHANGE_ALPHA)


def quiet(
    population: str, number: int, n_looks: int, *, change: bool, wealth: float
) -> dict[str, Any]:
    """The look of the first alarm, if there is any, and the largest wealth."""
    draw, n_reference = streams.POPULATIONS[population]
    rng = np.random.default_rng([3, number, list(streams.POPULATIONS).index(population)])
    monitor = sparker.AnytimeMonitor.start(draw(rng, n_reference), change=change, seed=number)
    best = -np.inf
    for look in range(1, n_looks + 1):
        # What monitor.look does with rows of numbers, without looking at them one by one.
        rows = monitor.transform(draw(rng, QUIET_ROWS))
        best = max(best, monitor.process.look(rows).log_wealth)
        if best >= np.log(wealth):
            return {"alarm": look, "log_wealth": round(best, 3)}
    return {"alarm": None, "log_wealth": round(best, 3)}


def delay(cell: str, number: int) -> dict[str, Any]:
    """The look of the first alarm; one before the change is a false alarm."""
    reference, rows = stream(cell, number)
    found = {"cusum": cusum(reference, rows)}
    for name, is_change in (("anytime", False), ("anytime, change", True)):
        # Within all looks together, a false alarm has a chance of at most 5 % in both.
        alpha = 2 * ALPHA / HORIZON if is_change else ALPHA
        monitor = sparker.AnytimeMonitor.start(
            reference, alpha=alpha, change=is_change, seed=number
        )
        found[name] = first(look.alarm for look in monitor.watch(rows))
    return found


def stream(cell: str, number: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Reference and batches."""
    anomaly, fraction = cell.split()
    return streams.reference(number), list(streams.batches(anomaly, float(fraction), number))


def first(alarms: Iterator[bool]) -> int | None:
    """The number of the first that is true, counted from 1."""
    return next((look for look, alarm in enumerate(alarms, 1) if alarm), None)


SLACK = 0.1
"""Of the CUSUM: half of the shift, in standard deviations, that it is best at. The anomalies shift
the first column by 0.02 to 0.15."""


def cusum(reference: np.ndarray, rows: list[np.ndarray]) -> int | None:
    """Two-sided, on the means of batches of the column that the anomalies shift."""
    mean, spread = reference[:, 0].mean(), reference[:, 0].std()
    means = np.array([(batch[:, 0].mean() - mean) / spread for batch in rows])
    return first(iter(_cusum(means[None])[0] >= cusum_threshold()))


def _cusum(means: np.ndarray) -> np.ndarray:  # (streams, looks)
    up = down = np.zeros(len(means))
    found = []
    for now in means.T:
        up = np.maximum(0, up + now - SLACK / 2)
        down = np.maximum(0, down - now - SLACK / 2)
        found.append(np.maximum(up, down))
    return np.stack(found, 1)


def cusum_threshold(_found: list[float] = []) -> float:  # noqa: B006 (made once)
    """Reached by 5 % of streams without change, references that vary included."""
    if not _found:
        rng = np.random.default_rng(4)
        means = rng.normal(size=(20_000, HORIZON)) / np.sqrt(BATCH)
        means -= rng.normal(size=(20_000, 1)) / np.sqrt(streams.N_REFERENCE)
        _found.append(float(np.quantile(_cusum(means).max(1), 1 - ALPHA)))
    return _found[0]


DELAYS = [f"{anomaly} {share}" for anomaly in streams.ANOMALIES for share in streams.FRACTIONS]
PARTS: dict[str, Callable[..., dict[str, Any]]] = {
    "never": never,
    "shorter": shorter,
    "change": change,
    "delay": delay,
}


def all_units() -> Iterator[units.Unit]:
    """In such an order that whatever is done, every cell has about as many streams."""
    for number in range(MOST):
        for part in ("never", "shorter", "change"):
            for population in streams.POPULATIONS:
                yield part, population, number
        for cell in DELAYS:
            yield "delay", cell, number


def measured(part: str, *where: Any) -> dict[str, Any]:
    """One unit."""
    return PARTS[part](*where)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing."""
    options = units.options(__doc__, RESULT).parse_args(arguments)
    units.run(options, "python -m experiments.anytime.run", SETTINGS, all_units(), measured)


if __name__ == "__main__":
    main()
