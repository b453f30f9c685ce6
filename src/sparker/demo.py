"""The demo: the paper's one-dimensional toy with a bump in the extreme tail, tested and drawn."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from sparker import plots
from sparker.batch import Fit, fit
from sparker.detect import test
from sparker.preprocess import unchanged
from sparker.result import TestResult
from sparker.sample import two_sample
from sparker.toys import EXPECTED, SIGNALS_1D, exponential
from sparker.widths import schedule, width_range


def run(seed: int, n_calibration: int, output: Path) -> None:
    """Draw the toy, test it, say where the anomaly is and show it."""
    reference, data, is_signal = exponential(
        np.random.default_rng(seed), SIGNALS_1D["extreme tail"]
    )
    note = Console(stderr=True)
    note.print(
        f"{len(data)} data events ({EXPECTED} expected), {is_signal.sum()} of them planted around "
        f"x = 9; {len(reference)} reference events. Fitting them and {n_calibration} anomaly-free "
        "experiments ...",
        soft_wrap=True,
    )
    # The toy's one feature has its natural scale already; widths then read in units of x.
    result = test(
        reference,
        data,
        n_calibration=n_calibration,
        seed=seed,
        expected=EXPECTED,
        preprocess=unchanged,
    )
    answer = Console(soft_wrap=True)
    answer.print(result.summary())
    answer.print(kernel_table(result, is_signal))
    # The observed fit once more, read off after every fifth step: the way to the widths tested.
    sample = two_sample(reference, data, expected=EXPECTED)
    path = fit(seed, sample, schedule(*width_range(sample.points)).every(5))
    draw(result, path, reference, data, output)
    note.print(f"The picture is in {output}.", soft_wrap=True)


def kernel_table(result: TestResult, is_signal: np.ndarray) -> Table:
    """Where each kernel ended, the strongest first."""
    model, f = result.model, result.data_components
    assert f is not None
    table = Table(title=f"The kernels at width {model.sigma:.2f}")
    for column in ("kernel", "x", "amplitude", "data events it claims", "of them planted"):
        table.add_column(column, justify="right")
    for i in np.argsort(-np.abs(model.a)):
        claimed = np.abs(f[:, i]) > 0.5 * np.abs(model.a[i])
        counts = str(claimed.sum()), str((claimed & is_signal).sum())
        table.add_row(str(i), f"{model.mu[i, 0]:.2f}", f"{model.a[i]:+.2f}", *counts)
    return table


def draw(
    result: TestResult, path: Fit, reference: np.ndarray, data: np.ndarray, output: Path
) -> None:
    """The verdict, the samples, the learned log-ratio and the kernels' way there."""
    figure = Figure(figsize=(8, 10.5), layout="constrained")  # without pyplot: needs no screen
    verdict, top, middle, bottom = figure.subplots(4, 1, height_ratios=(1.1, 2, 1.2, 1.2))
    plots.null_distribution(verdict, result)
    verdict.set_title("A few events too many near x = 9: five kernels go and find them")
    plots.samples_1d(top, reference, data, EXPECTED)
    ends = result.model.mu
    x = np.linspace(min(0, ends.min()) - 1, max(reference.max(), ends.max()) + 1, 2000)
    plots.log_ratio_1d(middle, result.model, x)
    plots.trajectories(bottom, path)
    bottom.axhline(float(result.model.sigma), color="grey", lw=0.5)
    for ax in (top, middle):
        ax.sharex(bottom)
        ax.tick_params(labelbottom=False)
    for ax in (verdict, top, bottom):
        ax.legend(fontsize="small", loc="best")
    bottom.set_xlabel("x")
    figure.savefig(output, dpi=130, format="png")  # whatever the name
