"""Texts written in one way: typography tells where a text comes from, and nothing of what it says.

Two editions of one book differ in quotes, dashes and capitals in every line. A test that sees
these rejects, and rightly so, but it is rarely what was asked.
"""

import unicodedata

NORMALISATION = "lower case, without accents and punctuation, single spaces"
AS_IT_IS = "none"


def plain_text(text: str) -> str:
    r"""Lower case, without accents and punctuation; signs and white space are single spaces.

    >>> plain_text("\u201cOù est-il?\u201d -- don\u2019t  SAY...")
    'ou est il dont say'
    """
    apart = unicodedata.normalize("NFKD", text).casefold()
    kept = []
    for sign in unicodedata.normalize("NFKD", apart):  # case may bring accents back
        kind = unicodedata.category(sign)[0]
        if kind == "M" or sign in APOSTROPHES:
            continue  # a mark of the letter before, or no more than a gap in a word
        kept.append(sign if kind in "LN" else " ")
    return " ".join("".join(kept).split())


APOSTROPHES = frozenset("'\u2018\u2019\u02bc\u0060\u00b4")
