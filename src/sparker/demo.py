"""The demo: the paper's one-dimensional toy with a bump in the extreme tail, fitted and drawn."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from sparker import plots
from sparker.batch import Fit, fit
from sparker.ensemble import components
from sparker.sample import two_sample
from sparker.toys import EXPECTED, SIGNALS_1D, exponential
from sparker.widths import schedule, width_range


def run(seed: int, output: Path) -> None:
    """Draw the toy, fit it, say where the kernels ended and show it."""
    reference, data, is_signal = exponential(
        np.random.default_rng(seed), SIGNALS_1D["extreme tail"]
    )
    note = Console(stderr=True)
    note.print(
        f"{len(data)} data events ({EXPECTED} expected), {is_signal.sum()} of them planted around "
        f"x = 9; {len(reference)} reference events. Fitting ...",
        soft_wrap=True,
    )
    sample = two_sample(reference, data, expected=EXPECTED)
    # Read off after every fifth step: the ten-odd widths of a test and the way between them.
    path = fit(seed, sample, schedule(*width_range(sample.points)).every(5))
    best = int(np.argmax(path.t))
    Console().print(kernel_table(path, best, data))
    draw(path, best, reference, data, output)
    note.print(f"The picture is in {output}.", soft_wrap=True)


def kernel_table(path: Fit, best: int, data: np.ndarray) -> Table:
    """Where each kernel ended, the strongest first."""
    model = path.at(best)
    f = components(model, data)
    table = Table(title=f"Largest t = {path.t[best]:.1f}, at width {model.sigma:.2f}")
    for column in ("kernel", "x", "amplitude", "data events it claims"):
        table.add_column(column, justify="right")
    for i in np.argsort(-np.abs(model.a)):
        claimed = np.sum(np.abs(f[:, i]) > 0.5 * np.abs(model.a[i]))
        table.add_row(str(i), f"{model.mu[i, 0]:.2f}", f"{model.a[i]:+.2f}", str(claimed))
    return table


def draw(path: Fit, best: int, reference: np.ndarray, data: np.ndarray, output: Path) -> None:
    """The samples, the learned log-ratio and the kernels' way there, one above the other."""
    figure = Figure(figsize=(8, 8), layout="constrained")  # without pyplot: needs no screen
    top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=(2, 1.2, 1.2))
    plots.samples_1d(top, reference, data, EXPECTED)
    top.legend()
    top.set_title("A few events too many near x = 9: five kernels go and find them")
    ends = path.at(best).mu
    x = np.linspace(min(0, ends.min()) - 1, max(reference.max(), ends.max()) + 1, 2000)
    plots.log_ratio_1d(middle, path.at(best), x)
    plots.trajectories(bottom, path)
    bottom.axhline(float(path.at(best).sigma), color="grey", lw=0.5)
    bottom.legend(fontsize="small", loc="lower right")
    bottom.set_xlabel("x")
    figure.savefig(output, dpi=130, format="png")  # whatever the name
