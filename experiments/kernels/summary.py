"""Powers of all ways to ask trained kernels, alone and in company, beside today's ``t``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from experiments.record import share

from sparker.calibration.combine import harmonic
from sparker.calibration.pvalues import family_p_values, heard, rank, tied
from sparker.system.versions import versions

LEVEL = 0.05
KERNELS, NOW = "all kernels", "trained: t"
COMMAND = (
    "python -m experiments.kernels.run --data DIR --keep FOLDER"
    " && python -m experiments.kernels.run --keep FOLDER --summarise"
)


def relative(t: np.ndarray) -> np.ndarray:  # (S, B, r) -> (S, B, r)
    """Each labelling of a sample relative to the median of its others."""
    labellings = range(t.shape[1])
    others = [np.median(np.delete(t, i, 1), 1) for i in labellings]
    return t - np.stack(others, 1)


def tables(t: np.ndarray) -> list[np.ndarray]:  # (S, B, r) -> S x (1 + S (B - 1), r)
    """Of every sample: its observed labelling, and below it the exchanged ones of all samples."""
    t = relative(t)
    exchanged = t[:, 1:].reshape(-1, t.shape[-1])
    return [np.vstack([observed, exchanged]) for observed in t[:, 0]]


def alone(t: np.ndarray) -> np.ndarray:  # (S,)
    """P-values of one family by itself."""
    return np.array([family_p_values(tied(heard(table)), ())[0] for table in tables(t)])


def in_company(t: np.ndarray, families: Sequence[str]) -> np.ndarray:  # (S,)
    """P-values of families together, as the default combines them."""
    return np.array([rank(table, harmonic, families).p_value for table in tables(t)])


def judged(samples: Sequence[dict[str, np.ndarray]]) -> dict[str, dict[str, np.ndarray]]:
    """P-values of all samples of a problem by every way: alone, and in the kernels' place."""
    families = samples[0]["families"].tolist()
    others = np.array([family != KERNELS for family in families])
    rest = np.stack([one["default"][:, others] for one in samples])
    names = [family for family in families if family != KERNELS]
    found: dict[str, dict[str, np.ndarray]] = {
        "without": {"in company": in_company(rest, names)},
    }
    for way in samples[0]:
        if way not in ("default", "families"):
            t = np.stack([one[way] for one in samples])
            together = np.concatenate([t, rest], -1)
            of = [KERNELS] * t.shape[-1] + names
            found[way] = {"alone": alone(t), "in company": in_company(together, of)}
    for family in dict.fromkeys(names):
        chosen = [name == family for name in names]
        found[f"family {family}"] = {"alone": alone(rest[..., chosen])}
    return found


def difference(ours: Sequence[np.ndarray], now: Sequence[np.ndarray]) -> dict[str, float]:
    """The mean over problems of the gain in power, sample by sample, and its standard error.

    And how many samples are newly found and lost: where hardly any is, the error means nothing.
    """
    gains = [
        (one <= LEVEL).astype(float) - (other <= LEVEL)
        for one, other in zip(ours, now, strict=True)
    ]
    variance = sum(gain.var(ddof=1) / len(gain) for gain in gains)
    mean = float(np.mean([gain.mean() for gain in gains]))
    every = np.concatenate(gains)
    return {
        "gain": round(mean, 4),
        "error": round(float(np.sqrt(variance)) / len(gains), 4),
        "newly_found": int((every > 0).sum()),
        "lost": int((every < 0).sum()),
    }


def summary(folder: Path, planted: dict[str, int]) -> dict[str, Any]:
    """Of every way: the power in each problem, the mean over them, and the gain over today's t."""
    found = {}
    for name in planted:
        paths = sorted(folder.glob(f"{name}; *.npz"), key=lambda path: int(path.stem.split()[-1]))
        if paths:
            found[name] = judged([dict(np.load(path, allow_pickle=False)) for path in paths])
    first = next(iter(found.values()))
    ways = {
        way: {
            place: _power({name: p[way][place] for name, p in found.items()})
            | difference(
                [p[way][place] for p in found.values()], [p[NOW][place] for p in found.values()]
            )
            for place in first[way]
        }
        for way in first
    }
    return {
        "command": COMMAND,
        "hardware": jax.devices()[0].device_kind,
        "versions": versions(),
        "planted": {name: planted[name] for name in found},
        "n_samples": {name: len(p[NOW]["alone"]) for name, p in found.items()},
        "ways": ways,
    }


def _power(p_values: dict[str, np.ndarray]) -> dict[str, Any]:
    shares = {name: share(int((p <= LEVEL).sum()), len(p)) for name, p in p_values.items()}
    mean = np.mean([one["share"] for one in shares.values()])
    return {"power": shares, "mean": round(float(mean), 4)}
