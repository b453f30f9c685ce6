"""Picture files, opened without trust."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from PIL import Image

FORMATS = "PNG", "JPEG"
MAX_PIXELS = 2**26
"""Of a picture file; one that claims more may be a few bytes that take up all memory."""
NOTHING = ""
"""In place of the path of a picture that is missing."""
GREY = 128


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[Image.Image]:
    """A picture file, none of whose pixels are read yet; refused if they would be too many."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our limit is lower
        picture = Image.open(path, formats=FORMATS)
    with picture:
        width, height = picture.size
        if width * height > MAX_PIXELS:
            raise ValueError(f"it has {width} x {height} pixels, more than {MAX_PIXELS:,}")
        yield picture


def picture(path: str) -> Image.Image:
    """A picture in RGB; a grey one where there is none."""
    if path == NOTHING:
        return Image.new("RGB", (64, 64), (GREY,) * 3)
    try:
        with opened(path) as found:
            return found.convert("RGB")
    # A damaged file makes its reader stumble in any way, over a SyntaxError of its own for one.
    except Exception as error:
        raise ValueError(f"the picture {path} cannot be read as PNG or JPEG: {error}") from error
