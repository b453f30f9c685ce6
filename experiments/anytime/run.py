"""False alarms of a stream that is watched for ever, and how long it takes to notice a change.

    python -m experiments.anytime.run [--seconds 2400]
    python -m experiments.anytime.run --only delay --output experiments/anytime/delay.json

* never: streams of 10,000 batches without change, each with a reference of its own; did the wealth
  ever reach 20, for an alarm at alpha = 5 %?
* shorter: the same for 1,000 batches, more streams.
* change: the same for changes, with alpha = 1 %: the number of looks until the first alarm.
* delay: 2 % or 5 % of the rows become anomalous after 10 of 50 batches of 250 rows; how many
  batches later is there an alarm, at a chance of 5 % of a false one in all 50? Beside it
  ``Monitor`` with Bonferroni's correction for 50 planned looks, and a CUSUM on the column that
  shows most, whose threshold is that of simulated streams. (alibi-detect's online MMD:
  ``online_mmd``.)

One process, one core. Each stream that is finished is kept in ``result.json`` (``delay.json``); the
same command goes on from there.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from experiments.anytime import streams
from experiments.anytime.streams import BATCH, HORIZON, N_FEATURES, QUIET, QUIET_ROWS
from experiments.record import as_text

import sparker
from sparker.system.atomic import whole_file
from sparker.system.versions import versions

RESULT = Path(__file__).parent / "result.json"
ALPHA, CHANGE_ALPHA = 0.05, 0.01
N_CHANGE_LOOKS, N_SHORTER_LOOKS = 2000, 1000
N_TOYS = 1000
MOST = 1000
Unit = tuple[str, str, int]


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


def delay(cell: str, number: int, *, with_monitor: bool) -> dict[str, Any]:
    """The look of the first alarm of each method; one before the change is a false alarm."""
    anomaly, fraction = cell.split()
    rows = list(streams.batches(anomaly, float(fraction), number))
    reference = streams.reference(number)
    found = {"cusum": cusum(reference, rows)}
    for name, is_change in (("anytime", False), ("anytime, change", True)):
        monitor = sparker.AnytimeMonitor.start(reference, change=is_change, seed=number)
        # Within all looks together, a false alarm has a chance of at most 5 % in both.
        alpha = 2 * ALPHA / HORIZON if is_change else ALPHA
        found[name] = first(look.alarm for look in monitor.watch(rows, alpha=alpha))
    if with_monitor:
        fixed = with_toys(number, reference)
        tested = (fixed.test(batch, explain=False).p_value for batch in rows)
        found["monitor"] = first(p * HORIZON <= ALPHA for p in tested)
    return found


def first(alarms: Iterator[bool]) -> int | None:
    """The number of the first that is true, counted from 1."""
    return next((look for look, alarm in enumerate(alarms, 1) if alarm), None)


_MONITORS: dict[int, sparker.Monitor] = {}


def with_toys(number: int, reference: np.ndarray) -> sparker.Monitor:
    """The fixed-size test of this reference; with as many toys as 50 looks at 5 % need."""
    if number not in _MONITORS:
        _MONITORS.clear()
        _MONITORS[number] = sparker.Monitor.calibrate(
            reference,
            BATCH,
            n_toys=N_TOYS,
            seed=number,
            progress=False,
            widths=sparker.WidthConfig(steps=300),
        )
        _MONITORS[number].check_reach(ALPHA, HORIZON)
    return _MONITORS[number]


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


PARTS: dict[str, Callable[..., dict[str, Any]]] = {
    "never": never,
    "shorter": shorter,
    "change": change,
    "delay": delay,
}


def units(only: list[str]) -> Iterator[Unit]:
    """In such an order that whatever is done, every cell has about as many streams."""
    cells = {
        "never": list(streams.POPULATIONS),
        "shorter": list(streams.POPULATIONS),
        "change": list(streams.POPULATIONS),
        "delay": [f"{a} {f}" for a in streams.ANOMALIES for f in streams.FRACTIONS],
    }
    for number in range(MOST):
        for part in only:
            for cell in cells[part]:
                yield part, cell, number


def main() -> None:
    """Measure until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2400)
    parser.add_argument("--only", default="never,change")
    parser.add_argument("--with-toys", type=int, default=3,
                        help="so many streams are watched by the fixed-size test, too")  # fmt: skip
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    os.environ["JAX_PLATFORMS"] = "cpu"
    began = time.monotonic()
    record: dict[str, Any] = {
        "command": "python -m experiments.anytime.run",
        "versions": versions(),
        "settings": {
            "alpha": ALPHA, "change_alpha": CHANGE_ALPHA, "quiet_looks": streams.N_QUIET_LOOKS,
            "quiet_rows": QUIET_ROWS, "change_looks": N_CHANGE_LOOKS, "toys": N_TOYS,
            "batch": BATCH, "features": N_FEATURES, "reference": streams.N_REFERENCE,
            "quiet": QUIET, "horizon": HORIZON,
        },
        "seconds": 0.0,
        "units": {},
    }  # fmt: skip
    if options.output.exists():
        before = json.loads(options.output.read_text())
        if before["settings"] != record["settings"]:
            raise SystemExit(f"{options.output} was made with other settings; move it away")
        record = {**record, "units": before["units"], "seconds": before["seconds"]}
    spent = record["seconds"]
    for part, cell, number in units(options.only.split(",")):
        if time.monotonic() - began > options.seconds:
            break
        done = record["units"].setdefault(part, {}).setdefault(cell, [])
        if len(done) > number:
            continue
        how = {"with_monitor": number < options.with_toys} if part == "delay" else {}
        done.append(PARTS[part](cell, number, **how))
        record["seconds"] = round(spent + time.monotonic() - began, 1)
        with whole_file(options.output) as file:
            file.write(as_text(record).encode())
        print(part, cell, number, done[-1], flush=True)


if __name__ == "__main__":
    main()
