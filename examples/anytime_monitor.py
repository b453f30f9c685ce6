"""
Continuous monitoring of a stream
=================================

Rows come in all day, and every batch is tested. A test at 5 % would raise a false alarm
every twenty looks. Here the probability of one, ever, is at most 5 %: bets are placed on the rows
that come, by kernels learned from those that came before.

For two hundred batches nothing happens. Then 4 % of the rows lie too close together, each of them
an ordinary value in every column. How soon is that noticed, and which rows is it about?
"""

import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import sparker

OUTPUT = Path("output")
OUTPUT.mkdir(exist_ok=True)
N_QUIET, N_AFTER, SIZE, ALPHA = 200, 20, 250, 0.05

# %%
# A reference, and batches
# ------------------------
rng = np.random.default_rng(0)
reference = rng.normal(size=(4000, 5))


def batch(share):
    """Some of the rows, the last ones, lie close together."""
    rows = rng.normal(size=(SIZE, 5))
    n = rng.binomial(SIZE, share)
    rows[SIZE - n :] = [1.2, 1.2, 0, 0, 0] + 0.15 * rng.normal(size=(n, 5))
    return rows, n


# %%
# Look at all of them
# -------------------
# Half way it is stopped, saved, and goes on in another object, as after a restart.
monitor = sparker.AnytimeMonitor.start(reference, alpha=ALPHA)
looks, seconds = [], []
for number in range(N_QUIET + N_AFTER):
    if number == N_QUIET // 2:
        monitor.save(OUTPUT / "monitor.sparker")
        monitor = sparker.load(OUTPUT / "monitor.sparker")
    rows, n_planted = batch(0.04 if number >= N_QUIET else 0.0)
    began = time.perf_counter()
    looks.append(monitor.look(rows))
    seconds.append(time.perf_counter() - began)
    if looks[-1].alarm:
        break
last = looks[-1]
delay = last.number - N_QUIET
print(f"alarm at look {last.number}, {delay} batches after the change; p = {last.p_value:.2g}")
print(f"strongest bet: {last.strongest}; a look took {1e3 * np.median(seconds):.0f} ms")

# %%
# Which rows is it about?
# -----------------------
most_paid = np.argsort(-last.payoffs, kind="stable")[:n_planted]
right = int(np.sum(most_paid >= SIZE - n_planted))
print(f"of the {n_planted} rows that are paid most, {right} are planted; there are {n_planted}")

figure, axis = plt.subplots(figsize=(8, 3.4), layout="constrained")
axis.semilogy([one.number for one in looks], [one.wealth for one in looks], color="C0")
axis.axhline(1 / ALPHA, color="C3", linestyle="--", label="alarm")
axis.axvline(N_QUIET, color="0.6", label="the change")
axis.set(xlabel="look", ylabel="wealth")
axis.legend()
figure.savefig(OUTPUT / "anytime_monitor.png")

# %%
# A report on the batch, as ``sparker watch --reports`` writes it
# ---------------------------------------------------------------
result = sparker.test(reference, rows, n_toys=99, progress=False)
print(result.summary())
result.report(OUTPUT / "anytime_monitor_report.html", title="The batch of the alarm")

# %%
# The report: `anytime_monitor_report.html <anytime_monitor_report.html>`_. What is promised, and
# how soon changes of other kinds are noticed, is on the page about streams.
