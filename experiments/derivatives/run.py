"""Two kernels with and without SoftMax, and how they respond to a shift of either.

    python -m experiments.derivatives.run [--quick] [--draw] [--output DIR]

The paper's figure "The effect of SoftMax on the model": ``f`` of two kernels in one dimension, and
its derivatives with respect to their locations. With SoftMax the derivative for one kernel changes
sign where the other one wins the competition; without it, only at the kernel itself.

Here: the same from the formulas the training uses. Locations, amplitudes and width are not stated
in the paper; ours are on top. For equal amplitudes the sign changes where the other kernel is
larger by ``1 + sqrt(2)``, which is ``log(1 + sqrt(2)) sigma^2 / (mu_2 - mu_1)`` beyond the middle.
"""

from functools import partial
from typing import Any

import numpy as np
from experiments import record

from sparker.engine import Competition, Ensemble, components, independent, log_ratio, softmax

MODEL = Ensemble(np.array([[-1.0], [1.0]]), np.array([1.0, 1.0]), np.array(1.0))
COMPETITIONS: dict[str, Competition] = {"without SoftMax": independent, "with SoftMax": softmax}
X = np.linspace(-5, 5, 401)
QUICK_X = X[::4]


def derivatives(
    model: Ensemble, x: np.ndarray, competition: Competition
) -> np.ndarray:  # (n,) -> (n, M)
    """``df/dmu_i = A_i(x) (x - mu_i)`` of a model in one dimension."""
    r = x[:, None] - np.asarray(model.mu)[:, 0]
    k = list(np.exp(-0.5 * (r / model.sigma) ** 2).T)
    f = log_ratio(model, x[:, None], competition)
    response = competition.response(model.a, k, competition.activation(k), f)
    return np.stack(response, -1) * r / model.sigma**2


def sign_changes(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Where y passes through zero, by linear interpolation between the points."""
    before = np.flatnonzero(np.sign(y[:-1]) * np.sign(y[1:]) < 0)
    between = x[before] - y[before] * (x[before + 1] - x[before]) / (y[before + 1] - y[before])
    return np.sort(np.append(between, x[y == 0]))


def measure(quick: bool) -> record.Result:
    """The curves, and where the derivatives change sign."""
    x = QUICK_X if quick else X
    curves, changes = {}, {}
    for name, competition in COMPETITIONS.items():
        d_mu = derivatives(MODEL, x, competition)
        curves[name] = {
            "f": record.rounded(log_ratio(MODEL, x[:, None], competition)),
            "components": record.rounded(components(MODEL, x[:, None], competition).T),
            "derivatives": record.rounded(d_mu.T),
        }
        changes[name] = [record.rounded(sign_changes(x, column), 3) for column in d_mu.T]
    (low,), (high,) = np.asarray(MODEL.mu)
    expected = (low + high) / 2 + np.log(1 + 2**0.5) * float(MODEL.sigma) ** 2 / (high - low)
    others = {
        name: [place for place in places[0] if abs(place - low) > 0.05]
        for name, places in changes.items()
    }

    def listed(name: str) -> str:
        return ", ".join(f"{place:.2f}" for place in others[name]) or "nowhere"

    return {
        "settings": {
            "locations": [low, high],
            "amplitudes": MODEL.a.tolist(),
            "width": float(MODEL.sigma),
        },
        "row": {
            "experiment": "derivatives of two kernels with and without SoftMax",
            "paper": "with SoftMax the derivative changes sign where the other kernel wins",
            "ours": f"for the kernel at {low:g}, beside there, at {listed('with SoftMax')} "
            f"(formula {expected:.2f}); without SoftMax {listed('without SoftMax')}",
            "68 % interval": "exact",
        },
        "sign changes": changes,
        "deviation": [],
        "x": record.rounded(x),
        "curves": curves,
    }


def draw(result: record.Result) -> Any:
    """Three panels: the model, and its derivative for each kernel."""
    from matplotlib.figure import Figure

    from sparker.plots.style import KERNELS

    figure = Figure(figsize=(10, 3.4), layout="constrained")
    axes = figure.subplots(1, 3, sharex=True)
    styles = {
        "without SoftMax": {"color": KERNELS[0], "ls": "-"},
        "with SoftMax": {"color": KERNELS[1], "ls": "--"},
    }
    x = np.array(result["x"])
    for name, curve in result["curves"].items():
        shown = [curve["f"], *curve["derivatives"]]
        for ax, y in zip(axes, shown, strict=True):
            ax.plot(x, y, lw=2, label=name, **styles[name])
    titles = ("model $f(x)$", r"$\partial f / \partial\mu_1$", r"$\partial f / \partial\mu_2$")
    for i, (ax, title) in enumerate(zip(axes, titles, strict=True)):
        ax.axhline(0, color="grey", lw=0.8)
        for j, mu in enumerate(result["settings"]["locations"]):
            ax.axvline(mu, color="grey", lw=0.8, ls=":")
            ax.text(mu, 1.0, rf" $\mu_{j + 1}$", transform=ax.get_xaxis_transform(), va="top")
        ax.margins(y=0.12)
        ax.set(xlabel="$x$", title=title)
        if i:  # where the other kernel has won
            curve = result["curves"]["with SoftMax"]["derivatives"][i - 1]
            own = result["settings"]["locations"][i - 1]
            y, r = np.array(curve), x - own
            ax.fill_between(x, 0, y, where=y * r < 0, color=KERNELS[1], alpha=0.25)
    axes[0].legend(fontsize=9, loc="lower center")
    return figure


main = partial(record.run, __file__, __doc__, measure, draw)


if __name__ == "__main__":
    main()
