"""Draw the pictures of the README and the docs, with the package itself.

python docs/make_images.py
"""

import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from selenium import webdriver

from sparker import plots
from sparker.cli import demo

IMAGES = Path(__file__).parent / "images"
N_TOYS = 200
HEAD = 1300, 900
"""Pixels of the report's head."""
DRAWN = 6, 16  # rows and columns of digits, of those that look ordinary


def digits() -> None:
    """The demo as a picture: what the test is given, and what it gives back."""
    drawn = demo.hide(hidden=0, seed=0)
    result = demo.look(drawn, N_TOYS, seed=0)
    print(result.summary())
    figure = Figure(figsize=(9, 4.4), layout="constrained")  # without pyplot: needs no screen
    top, bottom = figure.subfigures(2, 1, height_ratios=(1.1, 1))
    left, right = top.subplots(1, 2)
    n = DRAWN[0] * DRAWN[1]
    mosaic(left, drawn.reference[:n], DRAWN[1])
    left.set_title(f"Reference: {n} of {len(drawn.reference):,} digits")
    mosaic(right, drawn.data[:n], DRAWN[1])
    right.set_title(f"Data: {n} of {len(drawn.data)} digits")
    below, scores = bottom.subplots(1, 2)
    first = result.ranking[: demo.N_HIDDEN]
    mosaic(below, drawn.data[first], 8)
    below.set_title(f"The {demo.N_HIDDEN} most anomalous data rows")
    plots.null_distribution(result, ax=scores)
    scores.set_title(f"The data beside {result.n_toys} toys")
    figure.savefig(IMAGES / "digits.png", dpi=130)


def mosaic(ax: Axes, rows: np.ndarray, n_across: int) -> None:
    """Digits side by side, with a little room between them."""
    pictures = np.pad(rows.reshape(-1, demo.SIDE, demo.SIDE), [(0, 0), (2, 1), (1, 1)])
    _, high, wide = pictures.shape
    grid = pictures.reshape(-1, n_across, high, wide).transpose(0, 2, 1, 3)
    ax.imshow(grid.reshape(-1, n_across * wide), cmap="gray_r")
    ax.set_axis_off()


def report() -> None:
    """The head of the demo's report, as a browser shows it."""
    options = webdriver.ChromeOptions()
    for argument in ("headless", "no-sandbox", "disable-gpu", "hide-scrollbars"):
        options.add_argument(f"--{argument}")
    # A driver that is found needs no download.
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    browser = webdriver.Chrome(options, service)
    with tempfile.TemporaryDirectory() as folder, browser:
        page = Path(folder) / "report.html"
        demo.run(hidden=0, seed=0, n_toys=N_TOYS, output=page)
        browser.set_window_size(*HEAD)
        browser.get(page.as_uri())
        time.sleep(2)  # until the charts are drawn
        browser.save_screenshot(str(IMAGES / "report_head.png"))


if __name__ == "__main__":
    digits()
    report()
