"""One experiment of each data set, with what makes its rows readable: masses, names, lines."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

JETS = "jets_particlenet_169d"
IMAGES = "imagenet_mobilenet_logits"
PARTS = ("dante_inferno", "dante_purgatorio", "dante_paradiso")
LINES = "dante_anomalies_machine"
FILES = (JETS, IMAGES, f"{IMAGES}_striped", *PARTS, LINES)


class Size(NamedTuple):
    """How large an experiment is."""

    n_reference: int
    n_data: int
    fraction: float  # of the data rows that are planted


class Case(NamedTuple):
    """An experiment whose truth is known."""

    reference: np.ndarray  # (N_R, d)
    data: np.ndarray  # (N_D, d)
    planted: np.ndarray  # (N_D,) of bool
    of_reference: np.ndarray  # (N_R,) what is known of a row beside its features
    of_data: np.ndarray  # (N_D,)
    columns: np.ndarray  # (d,) their names, where they have any


class Rows(NamedTuple):
    """Rows of one kind, and what is known of each."""

    points: np.ndarray  # (N, d)
    known: np.ndarray  # (N,)


def load(folder: Path, name: str) -> dict[str, np.ndarray]:
    """A file without pickles."""
    with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def mixed(nominal: Rows, anomalies: Rows, size: Size, seed: int, columns: Sequence[str]) -> Case:
    """Disjoint nominal rows as reference and data, some data rows planted, in random order."""
    rng = np.random.default_rng(seed)
    n_planted = round(size.fraction * size.n_data)
    chosen = rng.permutation(len(nominal.points))[: size.n_reference + size.n_data - n_planted]
    in_reference, in_data = np.split(chosen, [size.n_reference])
    planted = rng.choice(len(anomalies.points), n_planted, replace=False)
    order = rng.permutation(size.n_data)

    def data(of_nominal: np.ndarray, of_anomalies: np.ndarray) -> np.ndarray:
        return np.concatenate([of_anomalies[planted], of_nominal[in_data]])[order]

    return Case(
        reference=nominal.points[in_reference].astype(np.float32),
        data=data(nominal.points, anomalies.points).astype(np.float32),
        planted=order < n_planted,
        of_reference=nominal.known[in_reference],
        of_data=data(nominal.known, anomalies.known),
        columns=np.array(columns),
    )


def jets(folder: Path, size: Size, seed: int) -> Case:
    """Jets of known kinds with some of a Higgs boson; known of each: its mass."""
    file = load(folder, JETS)
    mass = list(file["obs_names"]).index("jet_mass")
    nominal = Rows(file["reference_pool"], file["reference_obs"][:, mass])
    return mixed(nominal, Rows(file["anomaly"], file["anomaly_obs"][:, mass]), size, seed, [])


def stripes(folder: Path, size: Size, seed: int) -> Case:
    """Logits of photographs with some of stripes; the columns are classes."""
    file = load(folder, IMAGES)
    anomalies = load(folder, f"{IMAGES}_striped")["anomaly_striped"]
    nothing = [Rows(rows, np.zeros(len(rows))) for rows in (file["reference_pool"], anomalies)]
    names = [name.split("_", 1)[1].replace("_", " ") for name in file["names"]]
    return mixed(*nothing, size, seed, names)


def dante(folder: Path, size: Size, seed: int) -> Case:
    """Lines of the Divine Comedy with some that a language model wrote; known of each: its text."""
    parts = [load(folder, part) for part in PARTS]
    nominal = Rows(
        *(np.concatenate([p[key] for p in parts]) for key in ("reference_pool", "texts"))
    )
    file = load(folder, LINES)
    return mixed(nominal, Rows(file["anomaly_llm"], file["texts_llm"]), size, seed, [])
