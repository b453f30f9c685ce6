"""Numbers and texts as short as a reader wants them."""

import math

import numpy as np
from numpy.typing import ArrayLike

MINUS = "\N{MINUS SIGN}"
TIMES = "\N{NO-BREAK SPACE}\N{MULTIPLICATION SIGN}\N{NO-BREAK SPACE}"
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, digits: int = 3) -> str:
    """Return a number with few digits, no computer's exponent, and a real minus sign.

    >>> number(0.00498), number(1234.6)
    ('0.00498', '1,235')
    """
    text = f"{value:.{digits}g}"
    if "e" in text:
        if 1 <= abs(value) < 1e6:
            text = f"{value:,.0f}"
        else:
            mantissa, exponent = text.split("e")
            text = f"{mantissa}{TIMES}{power(int(exponent))}"
    return text.replace("-", MINUS)


def digits_for(values: ArrayLike, least: int) -> int:
    """Return so many digits that numbers which lie close together still differ.

    >>> digits_for([0.1, 0.9], 4), digits_for([1600000000.0, 1600050000.0], 4)
    (4, 8)
    """
    given = np.asarray(values, np.float64)
    finite = given[np.isfinite(given)]
    spread = float(np.ptp(finite)) if len(finite) else 0.0
    if not 0 < spread < math.inf:
        return least
    largest = float(np.abs(finite).max())
    return min(15, max(least, least + math.floor(math.log10(largest / spread))))


def power(exponent: int) -> str:
    """Return a power of ten, written out."""
    return "10" + str(exponent).translate(SUPERSCRIPT)


def clip(text: str, most: int) -> str:
    """Return the beginning of a text, with a sign that it goes on."""
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"
