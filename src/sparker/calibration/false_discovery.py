"""Many p-values at once: which of them to list so that few of those listed are chance."""

import math

import numpy as np
from scipy.stats import false_discovery_control


def q_values(p: np.ndarray) -> np.ndarray:  # (K,) -> (K,)
    """The smallest false discovery rate at which each would be listed.

    Benjamini and Hochberg, JRSS B 57, 289 (1995). Of the hypotheses with a q-value of at most 0.1,
    on average at most 10 % are true. That holds if p-values are independent or positively dependent
    (PRDS: Benjamini and Yekutieli, Annals of Statistics 29, 1165, 2001). What is NaN was not
    tested, and is none of the K.

    >>> import numpy as np
    >>> q_values(np.array([0.01, 0.5, np.nan, 0.02])).round(3).tolist()
    [0.03, 0.5, nan, 0.03]
    """
    found = np.full(len(p), np.nan)
    tested = ~np.isnan(p)
    if tested.any():
        found[tested] = false_discovery_control(p[tested])
    return found


def fewest_listed(n_samples: int, fdr: float, smallest: float) -> int | None:
    """How many samples must have the smallest possible p-value before any can be listed.

    None where not even all of them would do.

    >>> fewest_listed(200, 0.1, 1 / 301), fewest_listed(10, 0.1, 1 / 301)
    (7, 1)
    """
    n = max(1, math.ceil(smallest * n_samples / fdr * (1 - 1e-12)))
    return n if n <= n_samples else None
