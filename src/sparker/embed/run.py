"""Embedding many things: each different one once, in blocks, known ones from the cache."""

import hashlib
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from sparker.embed import cache
from sparker.embed.contract import IMAGES, TEXT, Embedder
from sparker.embed.pictures import picture
from sparker.system.progress import reporter

BLOCK = 256
"""Things of a block: embedded at once, and kept in one file."""


def encoded(embedder: Embedder, things: Sequence[Any]) -> np.ndarray:  # N -> (N, d)
    """The numbers of all things, in single precision."""
    if embedder.of == TEXT:
        wanted = [embedder.normalised(str(thing)) for thing in things]
    else:
        wanted = [os.fspath(thing) for thing in things]
    # In an order of their own, so that blocks are the same whichever sample a row came in.
    known = {thing: i for i, thing in enumerate(sorted(set(wanted)))}
    different = list(known)
    found = np.empty((len(different), embedder.width), np.float32)
    with reporter(embedder.progress, len(different), embedder.of) as on_progress:
        for start in range(0, len(different), BLOCK):
            block = different[start : start + BLOCK]
            found[start : start + len(block)] = _block(embedder, block)
            on_progress(start + len(block))
    return found[[known[thing] for thing in wanted]]


def _block(embedder: Embedder, block: list[str]) -> np.ndarray:
    shape = len(block), embedder.width
    key = _key(embedder, block) if embedder.cached else None
    kept = None if key is None else cache.get(key, shape)
    if kept is not None:
        return kept
    given: list[Any] = block if embedder.of == TEXT else [picture(path) for path in block]
    found = checked(embedder, embedder.batch(given), len(block))
    if found.shape != shape:
        raise ValueError(
            f"{embedder.name} gave {found.shape[1]} numbers a row, and {embedder.width} before; an "
            "embedder must give as many for each"
        )
    if key is not None:
        cache.put(key, found)
    return found


def checked(embedder: Embedder, given: Any, n: int) -> np.ndarray:  # (n, d)
    """What an embedder gave, if it is a row of finite numbers for each thing."""
    try:
        found = np.asarray(given, np.float32)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{embedder.name} must give an array of numbers (n, d), got {type(given).__name__}"
        ) from error
    if found.ndim != 2 or len(found) != n or not found.shape[1]:
        raise ValueError(
            f"{embedder.name} was given {n} things and gave shape {found.shape}; it must be "
            f"({n}, d), a row of numbers for each"
        )
    lost = ~np.isfinite(found).all(1)
    if lost.any():
        raise ValueError(
            f"{embedder.name} gave numbers that are not finite for {lost.sum()} of {n}"
        )
    return found


def _key(embedder: Embedder, block: list[str]) -> str:
    """What a block of embeddings is known by: the embedder, and the content of each thing."""
    who = {key: value for key, value in embedder.identity.items() if key != "labels"}
    whole = hashlib.sha256(repr(sorted(who.items())).encode())
    for thing in block:
        if embedder.of == IMAGES:
            with open(thing, "rb") as file:
                whole.update(hashlib.file_digest(file, "sha256").digest())
        else:
            whole.update(hashlib.sha256(thing.encode(errors="surrogatepass")).digest())
    return whole.hexdigest()
