"""Other sets of settings that belong together than the default: closer to the paper, or its own."""

from typing import Any, NamedTuple

from sparker.calibration.combine import minimum_and_product
from sparker.engine.config import FitConfig
from sparker.engine.widths import WidthConfig, linear, width_range


def annealed() -> dict[str, Any]:
    """Kernels that start on random data points and follow an annealed width, as in the paper.

    Against the default, which looks everywhere at each width before it trains (``engine.scan``):
    five times the steps, and a single statistic at each width, that of all kernels.

    >>> settings = annealed()  # for sparker.test(reference, data, **settings)
    >>> settings["widths"].steps, settings["config"].n_kernels
    (1000, 5)
    """
    return {
        "config": FitConfig(amplitude_rate=0.05),
        "widths": WidthConfig(steps=1000, annealing=linear, span=width_range),
    }


class Application(NamedTuple):
    """A row of the paper's table of training details."""

    steps: int
    l2: float
    clip: float


APPLICATIONS = {
    "gravitational waves": Application(100_000, 1.0, 100.0),
    "jets": Application(100_000, 1e-3, 100.0),
    "butterflies": Application(100_000, 1e-4, 200.0),
    "Dante": Application(100_000, 1e-3, 500.0),
    "ImageNet": Application(40_000, 0.0, 10_000.0),
    "CIFAR": Application(40_000, 0.0, 10_000.0),
}


def paper(application: str, *, steps: int | None = None) -> dict[str, Any]:
    """The paper's settings for one of its applications, as arguments of ``sparker.test``.

    Five kernels that stay where training takes them, widths from twice the 99 % to half the 1 %
    percentile of the distances in linear annealing, ten read-offs at equal numbers of steps, and
    the paper's combination. Optimiser, rates and number of read-offs are not stated there: these
    are ours. ``steps`` shortens the training.

    >>> settings = paper("jets", steps=1000)
    >>> settings["config"].clip, settings["widths"].steps
    (100.0, 1000)
    """
    if application not in APPLICATIONS:
        raise ValueError(f"application must be one of {list(APPLICATIONS)}, got {application!r}")
    n_steps, l2, clip = APPLICATIONS[application]
    return {
        "config": FitConfig(n_kernels=5, clip=clip, l2=l2, amplitude_rate=0.05),
        "widths": WidthConfig(
            steps=steps or n_steps, annealing=linear, span=width_range, evenly=True
        ),
        "combine": minimum_and_product,
    }
