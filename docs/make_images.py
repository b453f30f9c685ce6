"""Draw the pictures of the README and the docs, with the package itself.

python docs/make_images.py
"""

import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from selenium import webdriver
from selenium.webdriver.common.by import By

from sparker import TestResult, plots, test, unchanged
from sparker.benchmarks import EXPECTED, exponential
from sparker.cli import demo

IMAGES = Path(__file__).parent / "images"
SEED = 7
N_TOYS = 100


def extreme_tail() -> None:
    """The paper's one-dimensional toy with a bump in the extreme tail, tested and drawn."""
    rng = np.random.default_rng(SEED)
    reference, data, is_signal = exponential.draw(rng, "extreme tail")
    # The toy's one feature has its natural scale already; widths then read in units of x.
    result = test(
        reference,
        data,
        n_toys=N_TOYS,
        seed=SEED,
        expected=EXPECTED,
        preprocess=unchanged,
    )
    print(f"{len(data)} data events, {is_signal.sum()} of them planted around x = 9")
    print(result.summary())
    draw(result, reference, data, IMAGES / "extreme_tail.png")


def draw(result: TestResult, reference: np.ndarray, data: np.ndarray, output: Path) -> None:
    """The verdict, the samples, the learned log-ratio and the kernels' way there."""
    figure = Figure(figsize=(8, 10.5), layout="constrained")  # without pyplot: needs no screen
    verdict, top, middle, bottom = figure.subplots(4, 1, height_ratios=(1.1, 2, 1.2, 1.2))
    plots.null_distribution(result, ax=verdict)
    verdict.set_title("A few events too many near x = 9: five kernels go and find them")
    plots.samples_1d(reference, data, EXPECTED, ax=top)
    ends = result.model.mu
    x = np.linspace(min(0, ends.min()) - 1, max(reference.max(), ends.max()) + 1, 2000)
    plots.log_ratio_1d(result.model, x, ax=middle)
    plots.trajectories(result, name="x", ax=bottom)
    bottom.axhline(float(result.model.sigma), color="grey", lw=0.5)
    for ax in (top, middle):
        ax.sharex(bottom)
        ax.tick_params(labelbottom=False)
        ax.set_xlabel("")
    figure.savefig(output, dpi=130, format="png")  # whatever the name


def report() -> None:
    """The demo's report, part by part, as a browser shows it."""
    options = webdriver.ChromeOptions()
    for argument in ("headless", "no-sandbox", "disable-gpu", "window-size=1100,1000"):
        options.add_argument(f"--{argument}")
    # A driver that is found needs no download.
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    browser = webdriver.Chrome(options, service)
    with tempfile.TemporaryDirectory() as folder, browser:
        page = Path(folder) / "report.html"
        demo.run(hidden=0, seed=0, n_toys=200, output=page)
        browser.get(page.as_uri())
        time.sleep(2)  # until the charts are drawn
        for part in ("verdict", "scores", "kernels", "rows"):
            heading = browser.find_element(By.ID, f"h-{part}")
            browser.execute_script("arguments[0].scrollIntoView()", heading)
            time.sleep(0.5)
            browser.save_screenshot(str(IMAGES / f"report_{part}.png"))


if __name__ == "__main__":
    extreme_tail()
    report()
