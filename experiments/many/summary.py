"""What the tables and distances of the study showed, case by case."""

from typing import Any

import numpy as np
from experiments.many import distance, run

from sparker.calibration.false_discovery import q_values
from sparker.calibration.pvalues import clopper_pearson

RATES = (0.05, 0.1, 0.2)
LEVELS = (0.01, 0.05, 0.1, 0.2)
LEVEL = 0.05
Cases = dict[str, dict[str, Any]]


def _share(hits: np.ndarray) -> dict[str, Any]:
    k, n = int(hits.sum()), int(hits.size)
    return {"k": k, "n": n, "interval": clopper_pearson(k, n)}


def _mean(values: np.ndarray) -> dict[str, Any]:
    """A mean of tables, which are independent, and its standard error."""
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    return {"mean": float(values.mean()), "error": error, "tables": len(values)}


def discoveries(units: dict[str, Any]) -> Cases:
    """Levels, false discoveries and power, by case and number of anomalous samples."""
    found: Cases = {}
    for name in run.CASES:
        for n_anomalous in run.ANOMALOUS:
            start = f"{name}; {n_anomalous}; "
            ranks = [one["ranks"] for unit, one in units.items() if unit.startswith(start)]
            if not ranks:
                continue
            p = np.array(ranks) / (run.N_COMPARED + 1)  # (tables, samples)
            q = np.stack([q_values(row) for row in p])
            fine = np.arange(run.N_SAMPLES) >= n_anomalous
            by_rate = {}
            for rate in RATES:
                listed = q <= rate
                false = listed[:, fine].sum(1) / np.maximum(listed.sum(1), 1)
                by_rate[rate] = {
                    "false_discoveries": _mean(false),
                    "power": _mean(listed[:, ~fine].mean(1)) if n_anomalous else None,
                }
            # Samples of a table depend on each other: the error is that of tables.
            found.setdefault(name, {})[str(n_anomalous)] = {
                "level": {x: _mean((p[:, fine] <= x).mean(1)) for x in LEVELS},
                "rates": by_rate,
            }
    return found


def distances(units: dict[str, Any]) -> Cases:
    """How large distances are, how often intervals hold, how often the first is surely closer."""
    found = {}
    for name, case in distance.CASES.items():
        rows = [one for unit, one in units.items() if unit.startswith(f"{name}; ")]
        if not rows:
            continue
        a, b, c = (np.array([row[one] for row in rows]) for one in "abc")  # (n, 4)
        truth, mean = case.delta**2, float(a[:, 0].mean())
        all_three = np.stack([a, b, c], axis=1)
        p = all_three[:, :, 3]
        second = np.argsort(all_three[:, :, 0], axis=1)[:, 1]
        sure = p[np.arange(len(p)), second] <= LEVEL
        all_alike = case.delta == case.further
        found[name] = {
            "truth": truth,
            "mean": mean,
            "error": float(a[:, 0].std(ddof=1) / np.sqrt(len(a))) if len(a) > 1 else None,
            "covers_its_mean": _share((a[:, 1] <= mean) & (mean <= a[:, 2])),
            "covers_truth": _share((a[:, 1] <= truth) & (truth <= a[:, 2])),
            "low_end_holds": _share(a[:, 1] <= truth),
            "surely_first_of_three_alike": _share(sure) if all_alike else None,
            "a_before_c": None if all_alike else _share(a[:, 0] < c[:, 0]),
            "c_surely_behind": None if all_alike else _share(p[:, 2] <= LEVEL),
        }
    return found
