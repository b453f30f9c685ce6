"""Texts by the pieces of words in them, without any weights: TF-IDF of characters, then an SVD.

It learns from rows: which pieces there are, how rare each is, and along which directions texts
differ. Texts that it learned from lie otherwise than others, so it must learn from both samples
alike. Learned from the reference alone, it tells the two apart where nothing differs
(``docs/embed.md`` has the numbers).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_matrix

from sparker.embed.contract import Embedder
from sparker.embed.normalise import NORMALISATION
from sparker.system.digest import digest

N_GRAMS = 2, 4
"""Characters of a piece, at least and at most."""
MAX_PIECES = 20_000
"""The most frequent ones; more cost memory and time, and say little."""
MIN_TEXTS = 2
"""A piece that only one text has says nothing of others."""
WIDTH = 32
"""Directions; fewer where there are few texts."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Tfidf(Embedder):
    """TF-IDF of characters with a truncated SVD, to be fitted on both samples together."""

    name: ClassVar[str] = "tfidf"
    pieces: np.ndarray | None = field(default=None, repr=False)  # (V,) strings
    rarity: np.ndarray | None = field(default=None, repr=False)  # (V,)
    directions: np.ndarray | None = field(default=None, repr=False)  # (V, d)
    apart: bool = False
    """Whether it was fitted on rows that are used nowhere else."""

    @classmethod
    def fit(cls, texts: Sequence[str]) -> "Tfidf":
        """Learn from texts that are used nowhere else, for monitors and simulators.

        >>> apart = Tfidf.fit(["the cat sat", "the dog sat", "a cat and a dog", "the dog ran"])
        >>> apart.encode(["the cat ran"]).shape
        (1, 3)
        """
        return cls(apart=True)._learned(texts)

    @property
    def width(self) -> int:
        """One for each direction."""
        return 0 if self.directions is None else int(self.directions.shape[1])

    @property
    def learns(self) -> bool:
        """Until it was fitted."""
        return self.directions is None

    @property
    def cached(self) -> bool:
        """It is quicker than the disk."""
        return False

    def fitted(self, things: Sequence[Any]) -> "Tfidf":
        """Learn from the texts of all samples together, if it has not learned before."""
        return self._learned(things) if self.learns else self

    def _learned(self, texts: Sequence[str]) -> "Tfidf":
        # Sorted: what is learned must not depend on which of the texts are data, to the last bit.
        known = sorted(self.normalised(str(text)) for text in texts)
        # Imported when it is needed: it takes long, and most tests do without.
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(
            analyzer="char_wb", ngram_range=N_GRAMS, lowercase=False, sublinear_tf=True,
            min_df=MIN_TEXTS, max_features=MAX_PIECES, dtype=np.float64,
        )  # fmt: skip
        try:
            matrix = vectorizer.fit_transform(known)
        except ValueError as error:
            raise ValueError(
                "tfidf finds no piece of a word that two texts share; are these texts?"
            ) from error
        width = min(WIDTH, len(known) - 1, matrix.shape[1] - 1)
        if width < 1:
            raise ValueError(f"tfidf cannot learn from {len(known)} texts; take an embedder that "
                             "need not learn, such as embed='minilm'")  # fmt: skip
        svd = TruncatedSVD(width, random_state=0).fit(matrix)
        return Tfidf(
            pieces=vectorizer.get_feature_names_out().astype(np.str_),
            rarity=np.asarray(vectorizer.idf_, np.float64),
            directions=np.ascontiguousarray(svd.components_.T, np.float64),
            apart=self.apart,
            progress=self.progress,
        )

    @property
    def identity(self) -> dict[str, Any]:
        """The settings, and the hash of what was learned."""
        learned = self.directions is not None
        return {
            "embedder": self.name,
            "of": self.of,
            "model": f"{N_GRAMS[0]} to {N_GRAMS[1]} characters, {len(self.pieces)} pieces"
            if self.pieces is not None
            else None,
            "hash": digest(*map(_plain, self.arrays.values())) if learned else None,
            "normalisation": NORMALISATION,
            "fitted": "on rows used nowhere else" if self.apart else "on all samples together",
            "width": self.width,
        }

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Pieces, how rare each is, directions."""
        if self.pieces is None or self.rarity is None or self.directions is None:
            return {}
        return {"pieces": self.pieces, "rarity": self.rarity, "directions": self.directions}

    @classmethod
    def restored(cls, identity: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> "Tfidf":
        """What was saved; a ``ValueError`` where that cannot be."""
        pieces, rarity, directions = (arrays[name] for name in ("pieces", "rarity", "directions"))
        n = len(pieces)
        if (
            pieces.dtype.kind != "U" or rarity.shape != (n,) or directions.shape[:1] != (n,)
            or directions.ndim != 2 or {rarity.dtype.kind, directions.dtype.kind} != {"f"}
            or not (np.isfinite(rarity).all() and np.isfinite(directions).all())
            or len({*pieces.tolist()}) != n
        ):  # fmt: skip
            raise ValueError("what tfidf has learned does not fit together")
        apart = identity["fitted"] == "on rows used nowhere else"
        return cls(pieces=pieces, rarity=rarity, directions=directions, apart=apart)

    def batch(self, things: list[str]) -> np.ndarray:  # n -> (n, d)
        """As scikit-learn's own classes do it; of these only plain values are kept."""
        if self.pieces is None or self.rarity is None or self.directions is None:
            raise ValueError("tfidf has not learned yet; Tfidf.fit(texts) does")
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.preprocessing import normalize

        counts = TfidfVectorizer(
            analyzer="char_wb", ngram_range=N_GRAMS, lowercase=False, vocabulary=self.pieces,
            use_idf=False, norm=None, sublinear_tf=True, dtype=np.float64,
        ).fit_transform(things)  # fmt: skip
        weighted = normalize(csr_matrix(counts).multiply(self.rarity[None]).tocsr())
        return np.asarray(weighted @ self.directions)


def _plain(array: np.ndarray) -> np.ndarray:
    """Texts as numbers: digests are of these."""
    return array.view(np.uint32) if array.dtype.kind == "U" else array
