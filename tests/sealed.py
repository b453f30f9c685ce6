"""Files of ours opened without any check, changed, and written with a digest that fits."""

import json

import msgspec
from safetensors import numpy as safetensors

from sparker.system import archive


def value_of(content: bytes) -> dict:
    """What the JSON text in a file has, as plain values."""
    return msgspec.json.decode(bytes(archive._about(content).value))


def with_text(content: bytes, text: bytes, kind: str | None = None) -> bytes:
    """The file with another JSON text, or of another kind."""
    about = archive._about(content)
    return archive.sealed(kind or about.kind, text, safetensors.load(content))


def with_values(content: bytes, **values) -> bytes:
    """The file with other values in its JSON text; ``"raw:..."`` is taken as it is."""
    raw = {
        name: msgspec.Raw(value.removeprefix("raw:").encode())
        if isinstance(value, str) and value.startswith("raw:")
        else value
        for name, value in values.items()
    }
    return with_text(content, msgspec.json.encode(value_of(content) | raw))


def with_tensors(content: bytes, change) -> bytes:
    """The file with other shapes, kinds and offsets of its arrays, as safetensors has them."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    about = header.pop("__metadata__")
    change(header)
    text = json.dumps({"__metadata__": about, **header}).encode()
    return len(text).to_bytes(8, "little") + text + content[8 + size :]
