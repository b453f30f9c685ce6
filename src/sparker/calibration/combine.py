"""One test out of many: the p-values of several columns combined into a single score.

Each rule turns p-values (n, m) into scores (n,) that *grow* with the anomaly. A score is not a
p-value yet: ``pvalues.p_values`` ranks it among those of the toys. This corrects for having looked
at m columns, whatever the rule and however the columns depend on each other.
"""

from collections.abc import Callable

import numpy as np

Combination = Callable[[np.ndarray], np.ndarray]


def minimum_and_product(p: np.ndarray) -> np.ndarray:  # (n, m) -> (n,)
    """``-1/2 min log p - 1/(2m) sum log p``: one width that stands out, or many that agree.

    Paper: prints ``-1/2 min[log p]`` and calls the outcome p(D); it grows with the anomaly.

    >>> import numpy as np
    >>> minimum_and_product(np.array([[0.5, 0.01], [0.07, 0.07]])).round(2).tolist()
    [3.63, 2.66]
    """
    return (-np.log(np.min(p, axis=1)) + product(p) / p.shape[1]) / 2


def minimum(p: np.ndarray) -> np.ndarray:  # (n, m) -> (n,)
    """``-log min p``: the width that stands out most.

    Ranks among few toys often tie, the smallest most of all: with m columns about m rows of a table
    are the first in one. The product breaks these ties, and decides nothing else.
    """
    return -np.log(np.min(p, axis=1)) + 1e-9 * product(p)


def product(p: np.ndarray) -> np.ndarray:  # (n, m) -> (n,)
    """``-sum log p``, Fisher's rule: many widths that agree."""
    return -np.sum(np.log(p), axis=1)


def harmonic(p: np.ndarray) -> np.ndarray:  # (n, m) -> (n,)
    """``log mean 1/p``: one that stands out, or several that agree; the harmonic mean of p-values.

    Wilson, PNAS 116, 1195 (2019). Beside the smallest p-value alone, it listens to a second one
    that is nearly as small.

    >>> import numpy as np
    >>> harmonic(np.array([[0.5, 0.01], [0.02, 0.02]])).round(2).tolist()
    [3.93, 3.91]
    """
    low = np.min(p, axis=1, keepdims=True)  # beside it, no sum of one over p-values overflows
    return np.log(np.mean(low / p, axis=1)) - np.log(low[:, 0])


def cauchy(p: np.ndarray) -> np.ndarray:  # (n, m) -> (n,)
    """The mean of ``tan((1/2 - p) pi)``, Cauchy's rule.

    A p-value above 1/2 counts as 1/2, which adds nothing. Otherwise one column with a p-value near
    1 would outweigh another with a very small one.
    """
    return np.mean(np.tan((0.5 - np.minimum(p, 0.5)) * np.pi), axis=1)


RULES: tuple[Combination, ...] = (harmonic, minimum_and_product, minimum, product, cauchy)
