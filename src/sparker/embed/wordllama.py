"""Texts by the mean of their tokens' vectors: WordLlama, 256 numbers, thousands of lines a second.

Its package is MIT; its vectors were trained from the token embeddings of Llama 2, whose own
licence Meta wrote. So it is in none of sparker's extras: whoever installs it decides that.
"""

import functools
import json
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sparker.embed.contract import Embedder
from sparker.embed.normalise import NORMALISATION
from sparker.embed.weights import Packaged, path_of
from sparker.system.extras import need

PIP = "wordllama==0.4.0.post1"
VECTORS = Packaged(
    "wordllama",
    "weights/l2_supercat_256.safetensors",
    "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
    PIP,
)
TOKENIZER = Packaged(
    "wordllama",
    "tokenizers/l2_supercat_tokenizer_config.json",
    "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
    PIP,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class WordLlama(Embedder):
    """The mean vector of a text's tokens, 256 numbers."""

    name: ClassVar[str] = "wordllama"

    @property
    def identity(self) -> dict[str, Any]:
        """Vectors and tokenizer are pinned."""
        return {
            "embedder": self.name,
            "of": self.of,
            "model": "l2_supercat_256",
            "version": "0.4.0.post1",
            "hash": VECTORS.sha256,
            "tokenizer": TOKENIZER.sha256,
            "normalisation": NORMALISATION,
            "width": 256,
        }

    def batch(self, things: list[str]) -> np.ndarray:  # n -> (n, 256)
        """Nothing for a text without tokens."""
        vectors, tokenizer = _loaded()
        found = np.zeros((len(things), self.width), np.float32)
        for row, encoding in enumerate(tokenizer.encode_batch(things, add_special_tokens=False)):
            if encoding.ids:
                ids = np.minimum(encoding.ids, len(vectors) - 1)
                found[row] = vectors[ids].mean(0, dtype=np.float32)
        return found


@functools.cache
def _loaded() -> tuple[np.ndarray, Any]:
    tokenizer = need("embed='wordllama'", "tokenizers", "text").Tokenizer.from_file(
        str(path_of(TOKENIZER))
    )
    tokenizer.no_padding()
    tokenizer.no_truncation()
    content = path_of(VECTORS).read_bytes()  # safetensors: a length, a header in JSON, numbers
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    ((_, one),) = ((name, part) for name, part in header.items() if name != "__metadata__")
    low, high = one["data_offsets"]
    kind = {"F16": np.float16, "F32": np.float32}[one["dtype"]]
    numbers = np.frombuffer(content[start + low : start + high], kind)
    return numbers.reshape(one["shape"]).astype(np.float32), tokenizer
