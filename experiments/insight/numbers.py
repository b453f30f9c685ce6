"""How well single rows are told apart when it is known which were planted; what kernels claim."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from experiments import record
from scipy.special import expit
from scipy.stats import rankdata

from sparker import TestResult

TPR = 0.95
CUT = 0.95
"""Of the anomaly score ``c = Sigmoid(f)``."""
FPR = 0.011
"""That of the paper's cut: an efficiency at this rate depends on the order of the scores alone."""

SHOWN = ("FPR at 95 % TPR", "efficiency at 0.95", "FPR at 0.95")
"""The numbers that the paper has."""


def open_world(scores: np.ndarray, planted: np.ndarray) -> dict[str, Any]:  # (N,), (N,) of bool
    """The paper's numbers of novelty detection, from f of the data rows."""
    scores = np.asarray(scores, np.float64)
    of_planted, of_others = scores[planted], scores[~planted]
    k, n = len(of_planted), len(of_others)
    threshold = np.sort(of_planted)[::-1][int(np.ceil(TPR * k)) - 1]
    c_planted, c_others = expit(of_planted), expit(of_others)
    largest_left_out = np.sort(of_others)[::-1][int(FPR * n)]
    top = np.argsort(-scores, kind="stable")[:k]
    ranks = rankdata(scores)[planted]  # ties count half
    return {
        "planted": k,
        "others": n,
        "FPR at 95 % TPR": record.share(int(np.sum(of_others >= threshold)), n),
        "efficiency at 0.95": record.share(int(np.sum(c_planted >= CUT)), k),
        "FPR at 0.95": record.share(int(np.sum(c_others >= CUT)), n),
        "efficiency at 1.1 % FPR": record.share(int(np.sum(of_planted > largest_left_out)), k),
        "precision of the top k": record.share(int(np.sum(planted[top])), k),
        "AUC": round(float((ranks.sum() - k * (k + 1) / 2) / (k * n)), 4),
        "largest c": round(float(max(c_planted.max(), c_others.max())), 4),
    }


def by_width(
    result: TestResult, data: np.ndarray, planted: np.ndarray
) -> list[dict[str, float]]:  # (N_D, d), (N_D,)
    """The same at every width, to see what the choice of one costs: with hindsight, no result."""
    found = []
    for i, width in enumerate(result.widths):
        numbers = open_world(replace(result, best=i).log_ratio(data), planted)
        shares = {key: round(numbers[key]["share"], 4) for key in SHOWN}
        found.append({"width": round(float(width), 3), "AUC": numbers["AUC"], **shares})
    return found


class Claim(NamedTuple):
    """The rows where a kernel's |f_i| is more than half of the largest of any row."""

    data: np.ndarray  # (N_D,) of bool
    reference: np.ndarray  # (N_R,)
    peak: float


def claim(result: TestResult, kernel: int) -> Claim:
    """What a kernel claims at the best width."""
    data, reference = (
        np.abs(of[:, kernel]) for of in (result.data_components, result.reference_components)
    )
    peak = max(data.max(), reference.max())
    return Claim(data > peak / 2, reference > peak / 2, float(peak))


def beyond(result: TestResult) -> np.ndarray:  # (M,)
    """Each f_i summed over the data, less over the reference by what its rows stand for."""
    return result.data_components.sum(0) - result.reference_counts @ result.reference_components


def strongest(result: TestResult) -> int:
    """Of the kernels that say "too many" the one whose f_i sums to most over data beyond reference.

    Not the one with the largest f_i, which may sit on a single row; nor is a kernel strong that
    reaches all rows of both samples alike.
    """
    return int(np.argmax(np.where(np.asarray(result.model.a) > 0, beyond(result), -np.inf)))


def kernels(result: TestResult, planted: np.ndarray) -> list[dict[str, Any]]:
    """Which of them light up, and on whom."""
    found, gains = [], beyond(result)
    for kernel, amplitude in enumerate(result.model.a):
        rows = claim(result, kernel)
        found.append(
            {
                "kernel": kernel + 1,
                "amplitude": round(float(amplitude), 3),
                "largest |f_i|": round(rows.peak, 4),
                "claimed": int(rows.data.sum()),
                "expected": round(float(result.reference_counts[rows.reference].sum()), 1),
                "planted": int(planted[rows.data].sum()),
                "sum of f_i, data beyond reference": round(float(gains[kernel]), 3),
            }
        )
    return found
