"""Which rows are data in each toy, as bits, where the rows are in a scratch file."""

from typing import NamedTuple

import numpy as np


class Labels(NamedTuple):
    """Which rows are data, and which take no part, in each of B toys."""

    is_data: np.ndarray  # (B, N / 8) bits
    is_out: np.ndarray | None  # likewise; None where all rows take part in all toys
    factor: np.ndarray  # (B,) what the reference weights are multiplied by
    n_data: np.ndarray  # (B,)
    expected: np.ndarray  # (B,) the sum of the reference weights
    weights: np.ndarray | None  # (N,) how much rows count as reference; None for ones

    def there(self, rows: np.ndarray) -> np.ndarray:  # (...) -> (B, ...)
        """Which of these rows take part in each toy."""
        there = np.ones((len(self.factor), *rows.shape), bool)
        if self.is_out is not None:
            there &= ~_read_bits(self.is_out, rows)
        if self.weights is not None:
            there &= (self.weights[rows] > 0) | _read_bits(self.is_data, rows)
        return there


def _read_bits(bits: np.ndarray, rows: np.ndarray) -> np.ndarray:  # (B, N / 8), (...) -> (B, ...)
    return (bits[:, rows // 8] >> (7 - rows % 8)) & 1 == 1
