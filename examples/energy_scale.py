"""
An anomaly, or an energy scale?
===============================

A simulation knows energies to 3 %. Two sets of data arrive: in one all energies are 4 % larger, in
the other some events more lie close together. A test that takes the simulation for granted finds
both different. Which of them is news?

The energies of simulated events can be computed again with another scale: a function of the rows
and of the nuisance parameter, which is one where the scale is one standard deviation up.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import sparker

OUTPUT = Path("output")
OUTPUT.mkdir(exist_ok=True)
N_SIMULATED, N_DATA, N_TOYS = 2500, 600, 50


# %%
# Events: an energy above a threshold, and an angle
# -------------------------------------------------
def events(rng, n, scale=1.0):
    """The threshold is cut on before the scale is applied: it moves with it."""
    return np.column_stack([scale * (500 + rng.exponential(100, n)), rng.normal(size=n)])


def rescaled(rows, nu):
    """Events with their energy scale nu standard deviations up."""
    return rows * [1 + 0.03 * nu, 1]


rng = np.random.default_rng(0)
nominal = events(rng, N_SIMULATED)
shifted = events(rng, N_DATA, 1.04)
signal = np.column_stack([rng.normal(680, 6, 30), rng.normal(1.2, 0.1, 30)])
anomalous = np.concatenate([events(rng, N_DATA - 30, 1.04), signal])

# %%
# Without and with the uncertainty
# --------------------------------
# A warning says that the threshold moves with the rows. That is as it should be: it was cut on
# before the scale was applied, in the simulation and in the data.
scale = sparker.Systematic("energy scale", function=rescaled)
results = {}
for name, data in (("shifted", shifted), ("shifted, with a signal", anomalous)):
    for systematics in ([], [scale]):
        is_last = bool(systematics) and data is anomalous
        result = sparker.test(
            nominal, data, systematics=systematics, n_toys=N_TOYS, explain=is_last, progress=False
        )
        results[name, bool(systematics)] = result
        known = "scale uncertain" if systematics else "taken for granted"
        pulled = "".join(
            f"; {one.name} pulled to {one.value:+.2f} +- {one.error:.2f}"
            for one in result.nuisances
        )
        print(f"{name}, {known}: p = {result.p_value:.3f}{pulled}")

# %%
# What is left over, with the scale where the data want it
# --------------------------------------------------------
found = results["shifted, with a signal", True]
print(found.summary())
figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", sharey=True)
bins = np.linspace(480, 1000, 53)
for axis, (name, data) in zip(
    axes, (("shifted", shifted), ("shifted, with a signal", anomalous)), strict=True
):
    at_best = results[name, True].reference[:, 0]
    weight = np.full(N_SIMULATED, N_DATA / N_SIMULATED)
    axis.hist(nominal[:, 0], bins, weights=weight, histtype="step", color="0.6", label="nominal")
    axis.hist(
        at_best, bins, weights=weight, histtype="step", color=sparker.plots.REFERENCE,
        label="at the best scale",
    )  # fmt: skip
    axis.hist(data[:, 0], bins, histtype="step", color="C3", label="data")
    p = results[name, True].p_value
    axis.set(title=f"{name}: p = {p:.2f}", xlabel="energy", ylabel="events")
axes[0].legend()
figure.savefig(OUTPUT / "energy_scale.png")
found.report(OUTPUT / "energy_scale_report.html", title="An anomaly, or an energy scale?")

# %%
# The report: `energy_scale_report.html <energy_scale_report.html>`_. The p-value knows that the
# scale is fitted; what is said of *where* takes the fitted scale for the true one. So a region at
# the threshold may be what a scale that is a little off leaves there.
#
# All ways to declare a systematic, and how well levels and powers hold, are on the page about
# systematic uncertainties.
