"""Sets of settings that belong together: the default, the exploring one, the paper's own."""

from typing import Any, NamedTuple

from sparker.batch import FitConfig
from sparker.combine import minimum, minimum_and_product
from sparker.widths import WidthConfig, linear, resolvable_range, width_range


def following() -> dict[str, Any]:
    """The default: kernels that start on random data points and follow the annealed width."""
    return {"config": FitConfig(), "widths": WidthConfig(), "combine": minimum_and_product}


def exploring() -> dict[str, Any]:
    """Look everywhere before training, at each of ten widths that the sample can resolve.

    More power where nothing leads to the anomaly, with a fifth of the steps; see ``explore``. As
    arguments of ``sparker.test``, a monitor or a power study:

    >>> import numpy as np
    >>> import sparker
    >>> rng = np.random.default_rng(0)
    >>> reference, data = rng.normal(size=(2000, 2)), rng.normal(size=(200, 2))
    >>> data[:3] = [7, 7] + 0.3 * rng.normal(size=(3, 2))  # three events, far from everything
    >>> result = sparker.test(reference, data, n_calibration=99, **sparker.exploring())
    >>> result.p_value, result.readings[result.best_reading]
    (0.01, 'lonely')
    """
    return {
        "config": FitConfig(amplitude_rate=0.1),
        "widths": WidthConfig(steps=200, annealing=None, span=resolvable_range),
        "combine": minimum,
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
