"""Samples with anomalies planted in known rows: toys of 1 to 64 dimensions, and real tables.

A problem draws ``(rng, n_reference, n_data, n_planted)`` -> reference rows, data rows; the first
``n_planted`` data rows are the planted ones.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits

Draw = Callable[[np.random.Generator, int, int, int], tuple[np.ndarray, np.ndarray]]

SEEN = (
    "1-D bulk", "1-D tail", "2-D cluster", "2-D tail", "10-d cluster", "10-d two columns",
    "10-d tail", "64-d cluster", "64-d narrow", "64-d tail", "cover", "mammography", "mnist",
    "pageblocks", "pendigits", "satellite", "magic", "LIGO sine-Gaussian", "jets",
    "stripe overlay",
)  # fmt: skip
"""Those that the design was chosen on; all others were looked at only when it was fixed."""

TABLES = {
    "cover": ("adbench_cover_10d", 0),
    "mammography": ("adbench_mammography_6d", 0),
    "mnist": ("adbench_mnist_100d", 0),
    "pageblocks": ("adbench_pageblocks_10d", 0),
    "pendigits": ("adbench_pendigits_16d", 0),
    "satellite": ("adbench_satellite_36d", 0),
    "magic": ("adbench_magic_gamma_10d", 0),
    "LIGO sine-Gaussian": ("gw_ligo_gwak4d", 0),
    "LIGO burst": ("gw_ligo_gwak4d", 1),
    "jets": ("jets_particlenet_169d", 0),
    "stripe overlay": ("imagenet_mobilenet_logits", 0),
    "pure stripes": ("imagenet_mobilenet_logits", 1),
    "CIFAR": ("cifar10_mobilenet_logits", 0),
}
"""File and number of the kind of anomaly, for each real problem."""

OTHER_FILE = {
    "imagenet_mobilenet_logits": "imagenet_mobilenet_logits_striped",
    "cifar10_mobilenet_logits": "cifar10_mobilenet_logits_corrupt",
}


def toy(n_features: int, plant: Callable[[np.random.Generator, np.ndarray], np.ndarray]) -> Draw:
    """A normal background; ``plant`` makes anomalous rows of ordinary ones."""

    def draw(
        rng: np.random.Generator, n_reference: int, n_data: int, n_planted: int
    ) -> tuple[np.ndarray, np.ndarray]:
        reference = rng.normal(size=(n_reference, n_features))
        data = rng.normal(size=(n_data, n_features))
        data[:n_planted] = plant(rng, data[:n_planted])
        return reference, data

    return draw


def exponential(at: float, spread: float) -> Draw:
    """A falling background in one dimension, and a peak on it."""

    def draw(
        rng: np.random.Generator, n_reference: int, n_data: int, n_planted: int
    ) -> tuple[np.ndarray, np.ndarray]:
        reference, data = rng.exponential(size=(n_reference, 1)), rng.exponential(size=(n_data, 1))
        data[:n_planted] = rng.normal(at, spread, size=(n_planted, 1))
        return reference, data

    return draw


def cluster(rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
    """A narrow heap somewhere inside."""
    direction = rng.normal(size=rows.shape[1])
    centre = direction * (1.5 * rows.shape[1] ** 0.25 / np.linalg.norm(direction))
    return centre + 0.2 * rows


def tail(rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
    """Far out in one column."""
    rows = rows.copy()
    rows[:, 0] = 3 + 0.5 * rows[:, 0]
    return rows


def two_columns(rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
    """A narrow heap in two columns, ordinary in all others."""
    rows = rows.copy()
    rows[:, :2] = [1.8, -1.8] + 0.2 * rows[:, :2]
    return rows


def ring(rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
    """All at one distance from the middle."""
    radius = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / radius * (2.5 + 0.05 * rng.normal(size=(len(rows), 1)))


def correlated(rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
    """Two columns that go together, each of them ordinary."""
    rows = rows.copy()
    rows[:, 1] = rows[:, 0] + 0.1 * rows[:, 1]
    return rows


class Table(NamedTuple):
    """Disjoint rows of a table, and some of another kind."""

    nominal: np.ndarray
    anomalies: np.ndarray

    def __call__(
        self, rng: np.random.Generator, n_reference: int, n_data: int, n_planted: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """A sample of it."""
        turn = rng.permutation(len(self.nominal))
        data = self.nominal[turn[:n_data]].copy()
        data[:n_planted] = self.anomalies[rng.choice(len(self.anomalies), n_planted, replace=False)]
        return self.nominal[turn[n_data : n_data + n_reference]], data


def problems(folder: Path | None) -> dict[str, Draw]:
    """All problems; the real ones of ``folder`` only if it is given."""
    pixels, digit = load_digits(return_X_y=True)
    found: dict[str, Draw] = {
        "1-D bulk": exponential(1.6, 0.04),
        "1-D tail": exponential(6.4, 0.16),
        "2-D cluster": toy(2, cluster),
        "2-D tail": toy(2, tail),
        "10-d cluster": toy(10, cluster),
        "10-d two columns": toy(10, two_columns),
        "10-d tail": toy(10, tail),
        "64-d cluster": toy(64, cluster),
        "64-d narrow": toy(64, lambda rng, rows: 0.1 * rows),
        "64-d tail": toy(64, tail),
        "2-D ring": toy(2, ring),
        "5-d correlation": toy(5, correlated),
        "20-d cluster": toy(20, cluster),
        "digits, hidden 0": Table(pixels[digit != 0], pixels[digit == 0]),
        "digits, hidden 8": Table(pixels[digit != 8], pixels[digit == 8]),
    }
    if folder is not None:
        for name, (file, kind) in TABLES.items():
            found[name] = _read(folder, file, kind)
    return found


def _read(folder: Path, name: str, kind: int) -> Table:
    with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
        nominal = file["reference_pool"].astype(np.float32)
    with np.load(folder / f"{OTHER_FILE.get(name, name)}.npz", allow_pickle=False) as file:
        kinds = [key for key in file.files if key.startswith("anomaly")]
        kinds = [key for key in kinds if file[key].shape[1:] == nominal.shape[1:]]
        anomalies = file[kinds[kind]].astype(np.float32)
    return Table(nominal, anomalies)
