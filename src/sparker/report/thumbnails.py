"""Small pictures as data URIs, so that the report needs no other file."""

import base64
import io
import os
from collections.abc import Sequence
from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image

from sparker.embed.pictures import opened

SIDE = 64  # pixels, at most
BUDGET = 800_000  # characters of all thumbnails together
COLOURS = 64  # of a colour thumbnail; a palette halves its size

Picture = str | os.PathLike[str] | ArrayLike
"""A PNG or JPEG file, or pixels: (height, width) or with 3 or 4 colours, uint8 or floats."""


def thumbnails(images: Sequence[Picture], rows: Sequence[int]) -> dict[int, str]:
    """Data URIs of these rows' pictures, in this order and until the budget is spent."""
    low, high = _value_range(images, rows)
    found: dict[int, str] = {}
    spent = 0
    for row in rows:
        try:
            uri = _encode(_open(images[row], low, high))
        except (OSError, ValueError, TypeError, Image.DecompressionBombError) as error:
            raise ValueError(f"images[{row}] cannot be shown: {error}") from error
        spent += len(uri)
        if spent > BUDGET:
            break
        found[row] = uri
    return found


def _value_range(images: Sequence[Picture], rows: Sequence[int]) -> tuple[float, float]:
    """The range of all pictures that hold floats, so that they stay comparable: 0 to 1 at least."""
    low, high = 0.0, 1.0
    for row in rows:
        if not _is_path(images[row]):
            array = np.asarray(images[row])
            if array.dtype.kind == "f" and np.any(np.isfinite(array)):
                finite = array[np.isfinite(array)]
                low, high = min(low, float(finite.min())), max(high, float(finite.max()))
    return low, high


def _is_path(image: Picture) -> TypeGuard[str | os.PathLike[str]]:
    return isinstance(image, str | os.PathLike)


def _open(image: Picture, low: float, high: float) -> Image.Image:
    if _is_path(image):
        with opened(image) as picture:
            picture.thumbnail((SIDE, SIDE))  # before the pixels are read, where the format can
            small = picture.convert("RGB" if "RGB" in picture.mode or picture.mode == "P" else "L")
        small.info = {}  # nothing but pixels: a colour profile or a comment may be anything
        return small
    pixels = np.asarray(image)
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    colour = pixels.ndim == 3 and pixels.shape[2] in (3, 4)
    if not (pixels.ndim == 2 or colour) or pixels.size == 0:
        raise ValueError(
            f"its shape is {pixels.shape}, not (height, width) or (height, width, 3 or 4)"
        )
    if pixels.dtype.kind == "f":
        pixels = np.nan_to_num((pixels - low) / (high - low), posinf=1, neginf=0) * 255
    elif pixels.dtype == np.bool_:
        pixels = pixels * 255.0
    elif pixels.dtype != np.uint8:
        raise ValueError(f"its values are {pixels.dtype}, not uint8 or floats")
    whole = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).convert(
        "RGB" if colour else "L"
    )
    whole.thumbnail((SIDE, SIDE))
    return whole


def _encode(image: Image.Image) -> str:
    if image.mode == "RGB":
        image = image.quantize(COLOURS)
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
