"""The spectrum's likelihood, written down: what the best nuisance value is, and what it costs.

    python -m experiments.systematics.oracle

With both samples exponential, of scales theta and theta (1 + 0.1 nu), the best nu is a root of one
equation. And where the shape of the anomaly is known, the likelihood ratio is the most powerful
test there is: its power with nu known and with nu fitted says how much any test has to lose.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from experiments.systematics.problems import BUMP, N_DATA, PER_SIGMA, spectrum
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import norm

from sparker.system.atomic import whole_file

RESULT = Path(__file__).parent / "oracle.json"
N_NULL, N_SAMPLES, N_PLANTED = 400, 400, 10
WIDTH = PER_SIGMA["spectrum"]


def best_value(reference: np.ndarray, data: np.ndarray) -> float:
    """The best nu, with the scale of the reference fitted too and the constraint on nu."""
    n_reference, n_data = len(reference), len(data)
    of_reference, of_data = reference.sum(), data.sum()

    def loss(nu: float) -> float:
        scale = 1 + WIDTH * nu
        theta = (of_reference + of_data / scale) / (n_reference + n_data)
        return float((n_reference + n_data) * np.log(theta) + n_data * np.log(scale) + nu**2 / 2)

    return float(minimize_scalar(loss, bounds=(-6, 6), method="bounded").x)


def likelihood_ratio(x: np.ndarray, *, fitted: bool) -> float:  # (n,) -> ()
    """Of a bump of known shape and unknown size over none, with nu fitted or zero."""
    bump = norm.pdf(x, *BUMP)

    def loss(share: float, nu: float) -> float:
        scale = 1 + WIDTH * nu
        density = (1 - share) * np.exp(-x / scale) / scale * (x > 0) + share * bump
        return float(-np.log(np.maximum(density, 1e-300)).sum() + nu**2 / 2)

    nus = (-6.0, 6.0) if fitted else (0.0, 0.0)
    both = minimize(lambda at: loss(*at), [0.01, 0.0], bounds=[(0.0, 0.5), nus], method="L-BFGS-B")
    alone = minimize(lambda at: loss(0.0, at[0]), [0.0], bounds=[nus], method="L-BFGS-B")
    return 2 * float(alone.fun - both.fun)


def main() -> None:
    """The power of the best test, with nu known and with nu fitted."""
    found: dict[str, Any] = {
        "command": "python -m experiments.systematics.oracle",
        "planted": N_PLANTED,
    }
    for name, fitted in (("known", False), ("fitted", True)):
        rng = np.random.default_rng(0)
        null = [
            likelihood_ratio(rng.exponential(size=N_DATA), fitted=fitted) for _ in range(N_NULL)
        ]
        planted = [
            likelihood_ratio(spectrum(rng, 0.0, N_PLANTED, False).data[:, 0], fitted=fitted)
            for _ in range(N_SAMPLES)
        ]
        above = int(np.sum(np.array(planted) > np.quantile(null, 0.95)))
        found[name] = {"found": above, "samples": N_SAMPLES}
    with whole_file(RESULT) as file:
        file.write((json.dumps(found, indent=1) + "\n").encode())
    print(found)


if __name__ == "__main__":
    main()
