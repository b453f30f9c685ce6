"""Problems hardly looked at while the default was chosen, and that need no files.

At most five samples of a kind were; none of the wine.
"""

from collections.abc import Iterator

import numpy as np
from experiments.answers.problems import (
    Table,
    cluster,
    correlated,
    ring,
    tail,
    toy,
    two_columns,
)
from experiments.power.product_problem import Problem, planted
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

DIMENSIONS = (5, 10, 20, 64)
N_REFERENCE, N_DATA = 2_000, 500
PLANTS = {
    "cluster": (cluster, 0.02),
    "tail": (tail, 0.04),
    "two columns": (two_columns, 0.04),
    "narrow": (lambda rng, rows: 0.1 * rows, 0.02),
    "ring": (ring, 0.06),
    "correlation": (correlated, 0.2),
    "all shifted": (lambda rng, rows: rows + 0.1, 1.0),
    "all wider": (lambda rng, rows: 1.06 * rows, 1.0),
}
"""What becomes of ordinary rows, and of which share of them."""


def unseen() -> Iterator[Problem]:
    """Tables that come with scikit-learn, and toys of 5 to 64 dimensions."""
    pixels, digit = load_digits(return_X_y=True)
    for one in range(10):
        yield _hidden(f"digits, hidden {one} 4 %", pixels, digit == one, 1_000, 600, 0.04)
    cells, benign = load_breast_cancer(return_X_y=True)
    yield _hidden("breast cancer 10 %", cells, benign == 0, 240, 110, 0.1)
    bottles, cultivar = load_wine(return_X_y=True)
    for one in range(3):
        yield _hidden(f"wine, hidden {one} 10 %", bottles, cultivar == one, 65, 40, 0.1)
    for n_features in DIMENSIONS:
        for name, (plant, share) in PLANTS.items():
            yield Problem(
                name=f"{n_features}-d {name}" + f" {share:.0%}".replace("%", " %") * (share < 1),
                table="unseen",
                n_reference=N_REFERENCE,
                n_data=N_DATA,
                draw=planted(toy(n_features, plant), N_REFERENCE, N_DATA, share),
            )


def _hidden(
    name: str, rows: np.ndarray, rare: np.ndarray, n_reference: int, n_data: int, share: float
) -> Problem:
    """Rows of one kind hidden among all others, of which the reference consists."""
    return Problem(
        name=name,
        table="unseen",
        n_reference=n_reference,
        n_data=n_data,
        draw=planted(Table(rows[~rare], rows[rare]), n_reference, n_data, share),
    )
