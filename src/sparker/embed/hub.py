"""Models of the hubs: ``st:NAME`` (sentence-transformers) for texts, ``timm:NAME`` for pictures.

Nothing is downloaded unless ``SPARKER_DOWNLOAD=1`` asks for it: a model must be in the hub's own
cache, or a folder on disk. No code of a model's author is run.
"""

import functools
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sparker.embed.contract import IMAGES, TEXT, Embedder
from sparker.embed.normalise import NORMALISATION
from sparker.system.digest import digest_by_name
from sparker.system.extras import need

ALLOWED = "SPARKER_DOWNLOAD"


def may_download() -> bool:
    """Whether somebody asked for it."""
    return os.environ.get(ALLOWED) == "1"


@dataclass(frozen=True, kw_only=True, eq=False)
class HubModel(Embedder):
    """A model by its name, or by its folder."""

    model: str
    prefix: ClassVar[str]
    package: ClassVar[str]

    @property
    def name(self) -> str:  # type: ignore[override]
        """As ``embed`` takes it."""
        return f"{self.prefix}:{self.model}"

    @property
    def identity(self) -> dict[str, Any]:
        """The hash is that of the weights as they were loaded."""
        loaded = _loaded(self.package, self.model)
        return {
            "embedder": self.name,
            "of": self.of,
            "model": self.model,
            "version": f"{self.package} {need('', self.package, 'hub').__version__}",
            "hash": loaded[1],
            "normalisation": NORMALISATION if self.of == TEXT else "the model's own",
            "width": loaded[2],
        }

    def refuse(self, found: Mapping[str, Any]) -> str:
        """The same weights are the same model, whichever version of the package loads them."""
        return super().refuse({**found, "version": self.identity["version"]})


@dataclass(frozen=True, kw_only=True, eq=False)
class SentenceTransformer(HubModel):
    """A model of sentence-transformers."""

    prefix: ClassVar[str] = "st"
    package: ClassVar[str] = "sentence_transformers"

    def batch(self, things: list[str]) -> np.ndarray:
        """Numbers of each text."""
        model = _loaded(self.package, self.model)[0]
        return np.asarray(model.encode(things, show_progress_bar=False, convert_to_numpy=True))


@dataclass(frozen=True, kw_only=True, eq=False)
class Timm(HubModel):
    """A model of timm, without its last layer."""

    prefix: ClassVar[str] = "timm"
    package: ClassVar[str] = "timm"
    of: ClassVar[str] = IMAGES

    def batch(self, things: list[Any]) -> np.ndarray:
        """Numbers of each picture, prepared as the model wants it."""
        torch = need(f"embed={self.name!r}", "torch", "hub")
        timm = need(f"embed={self.name!r}", "timm", "hub")
        model = _loaded(self.package, self.model)[0]
        wanted = timm.data.resolve_model_data_config(model)
        prepare = timm.data.create_transform(**wanted, is_training=False)
        with torch.inference_mode():
            found = model(torch.stack([prepare(one) for one in things]))
        return np.asarray(found.cpu().numpy())


@functools.cache
def _loaded(package: str, model: str) -> tuple[Any, str, int]:
    """A model, the hash of its weights, and how many numbers it gives."""
    module = need(f"the model {model!r}", package, "hub")
    try:
        with _offline():
            if package == "timm":
                found = module.create_model(model, pretrained=True, num_classes=0).eval()
                width = found.num_features
            else:
                found = module.SentenceTransformer(
                    model,
                    device="cpu",
                    trust_remote_code=False,
                    local_files_only=not may_download(),
                    model_kwargs={"use_safetensors": True},  # no pickles
                )
                width = found.get_sentence_embedding_dimension()
    except Exception as error:  # whatever the hub's own packages stumble over
        hint = "" if may_download() else f"; {ALLOWED}=1 lets it be downloaded"
        raise ValueError(f"the model {model!r} cannot be loaded: {error}{hint}") from error
    weights = {name: one.cpu().numpy() for name, one in found.state_dict().items()}
    return found, digest_by_name(weights), int(width)


@contextmanager
def _offline() -> Iterator[None]:
    """The hub's own packages reach for the network unless they are told not to."""
    if may_download():
        yield
        return
    hub = need("a model of a hub", "huggingface_hub", "hub")
    before, hub.constants.HF_HUB_OFFLINE = hub.constants.HF_HUB_OFFLINE, True
    try:
        yield
    finally:
        hub.constants.HF_HUB_OFFLINE = before
