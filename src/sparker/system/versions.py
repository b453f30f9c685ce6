"""What made a result: packages, Python, machine and device."""

import functools
import platform
from importlib import metadata

import jax


def versions() -> dict[str, str]:
    """What made a result: packages, Python, machine and device."""
    device = jax.devices()[0]
    return {
        **_installed(),
        "python": platform.python_version(),
        "machine": platform.platform(),
        "device": f"{device.platform} {device.device_kind}",
    }


@functools.cache
def _installed() -> dict[str, str]:
    """The versions of packages, which take a while to be looked up."""
    from sparker import __version__  # here: the package imports this module first

    names = ("jax", "numpy", "scipy", "optax")
    return {"sparker": __version__, **{name: metadata.version(name) for name in names}}
