"""
A table that drifts, and a job that fails
=========================================

A service reads handwritten digits. It was accepted with a thousand of them, and since then gets
eighty a day. One day a scanner slips: some of the pictures arrive one pixel too low. Every value
is still an ordinary value of its column, so nothing that checks ranges notices. Which day does a
job in CI turn red, and what does whoever looks at it find?

The digits are those that come with scikit-learn: 1,797 rows of 64 numbers.
"""

import json
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import sparker

OUTPUT = Path("output")
BATCHES = OUTPUT / "batches"
BATCHES.mkdir(parents=True, exist_ok=True)

# %%
# The reference, and nine days
# ----------------------------
# From day 6 on the scanner slips, first for a quarter of the pictures, then for half of them and
# more.
pixels = load_digits().data
rows = np.random.default_rng(0).permutation(pixels)
reference, later = rows[:1000], rows[1000:1720].reshape(9, 80, 64)
slipped = [0, 0, 0, 0, 0, 20, 40, 60, 80]  # of the 80 rows of a day


def lower(pictures):
    """One pixel down; an empty line comes in at the top."""
    pictures = pictures.reshape(-1, 8, 8)
    return np.concatenate([np.zeros_like(pictures[:, :1]), pictures[:, :-1]], 1).reshape(-1, 64)


np.save(OUTPUT / "reference.npy", reference)
for day, (batch, n) in enumerate(zip(later, slipped, strict=True), 1):
    np.save(BATCHES / f"day-{day}.npy", np.concatenate([batch[n:], lower(batch[:n])]))


# %%
# Once: a monitor
# ---------------
# The reference, the settings and the level in one file, which keeps every look.
def run(*arguments):
    """A command as it would be typed, and what it says."""
    print("$ sparker", *arguments)
    command = [sys.executable, "-m", "sparker", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=OUTPUT, check=False)


made = run("calibrate", "reference.npy", "monitor.sparker", "--alpha", 0.01)
assert made.returncode == 0, made.stderr
print(sparker.load(OUTPUT / "monitor.sparker").summary())

# %%
# Every day: one line, one exit code
# ----------------------------------
# In CI this is the whole job. The exit code is 0 as long as all is well, 1 for an alarm, 2 and
# above where something could not be tested, which no job should take for a pass:
#
# .. code-block:: yaml
#
#     - run: pip install ./sparker
#     - run: sparker watch monitor.sparker batches/ --reports alarms
#     - uses: actions/upload-artifact@v4
#       if: failure()
#       with: {name: alarms, path: alarms}
#
# Here are all nine days at once, and the answer as JSON, a line a batch.
watched = run(
    *("watch", "monitor.sparker", *(f"batches/day-{day}.npy" for day in range(1, 10))),
    *("--reports", "alarms"),
)
lines = [json.loads(line) for line in watched.stdout.splitlines()]
for line in lines:
    print(f"{line['batch']}: p = {line['p_value']:.3f}{'  ALARM' if line['alarm'] else ''}")
print("exit code", watched.returncode)

# %%
# What the days looked like
# -------------------------
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
sparker.plots.trend(lines, alpha=0.01, ax=left)
right.bar(range(1, 10), slipped, color=sparker.plots.REFERENCE)
right.set(xlabel="day", ylabel="pictures one pixel too low, of 80", xticks=range(1, 10))
figure.savefig(OUTPUT / "drift.png")

# %%
# What whoever looks at it finds
# ------------------------------
# Each alarm has written a report. The same can be asked in Python, of one batch: which rows, and
# where.
last = np.load(BATCHES / "day-9.npy")
result = sparker.test(reference, last, progress=False)
print(result.summary())
result.report(
    OUTPUT / "drift_report.html",
    images=list(16 - last.reshape(-1, 8, 8)),
    title="Day 9: are these digits as those that the service was accepted with?",
    alpha=0.01,
)

# %%
# The report: `drift_report.html <drift_report.html>`_. The columns that show it are those of the
# top line of pixels, which no longer has any ink.
#
# At alpha = 0.01 one look in a hundred is a false alarm. Where that is too many, plan the looks
# (``--looks 365``): alpha is then that of all of them together.
