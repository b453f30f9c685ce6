"""
A search, remade: a bump in a falling spectrum
==============================================

The first benchmark of the SparKer paper, as a physicist would set it up: a falling spectrum in one
variable, a background that is simulated with weights, a number of events that theory predicts, and
data that may hold a bump nobody knows the place of.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import expon, norm

import sparker

OUTPUT = Path("output")
OUTPUT.mkdir(exist_ok=True)
rng = np.random.default_rng(4)  # the first that draws ten signal events, as many as expected

# %%
# Background, expected counts, data
# ---------------------------------
# In suitable units the background falls as exp(-x), and 2,000 events are expected. A simulation
# that drew it as it is would have hardly an event where it matters, so it is drawn with half the
# slope, and events are weighted back: w(x) = exp(-x) / (exp(-x / 2) / 2).
EXPECTED = 2000
simulated = rng.exponential(2, size=(6000, 1))


def weight(x):
    """True density over simulated density; a factor common to all events does not matter."""
    return 2 * np.exp(-x[:, 0] / 2)


# %%
# The data are what was recorded: Poisson(2,000) events of the background, and, unknown to the
# analysis, about ten of a narrow resonance at x = 6.4, where the background alone has about two
# within two of its widths.
SIGNAL = 0.005 * EXPECTED
background = rng.exponential(size=(rng.poisson(EXPECTED), 1))
signal = rng.normal(6.4, 0.16, size=(rng.poisson(SIGNAL), 1))
data = np.concatenate([background, signal])
print(f"{len(data)} events recorded, {EXPECTED} expected; {len(signal)} are of the signal")


# %%
# The test
# --------
# Toys are new experiments: a Poisson number of events, drawn anew. All are compared with the one
# simulated sample, which keeps its weights. The number of events is part of the test
# (``expected``), and no place or width is given anywhere: that it was searched for everywhere is
# in the p-value, since the toys were searched everywhere, too.
#
# ``explain=False``: lists of rows and regions with p-values of their own need rows that can stand
# for each other one by one, which weighted ones cannot. What the kernels learned is shown below.
def draw(rng, n):
    """Anomaly-free events, new ones every time."""
    return rng.exponential(size=(n, 1))


result = sparker.test(
    simulated,
    data,
    reference_weights=weight,
    expected=EXPECTED,
    null=sparker.Simulator(draw),
    n_toys=100,
    explain=False,
)
print(result.summary())


# %%
# A hundred toys are for this page. For a paper make more of them, as many as the significance
# needs that is to be claimed (``n_toys=100_000`` reach 4.3 sigma), and decide on their number
# before.
#
# How good is that? Who knew the place, the width and the number of signal events could not do
# better than the likelihood ratio of the true densities:
def likelihood_ratio(x):
    """Twice the logarithm of that with the signal over that without, numbers of events included."""
    ratio = norm.pdf(x, 6.4, 0.16) / expon.pdf(x)
    return 2 * (np.log1p(SIGNAL / EXPECTED * ratio).sum() - SIGNAL)


known = likelihood_ratio(data)
toys = np.array([likelihood_ratio(draw(rng, rng.poisson(EXPECTED))) for _ in range(10_000)])
print(f"with the signal known: p = {(1 + np.sum(toys >= known)) / (1 + len(toys)):.2g}")

# %%
# The picture
# -----------
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
sparker.plots.samples_1d(
    *(simulated, data, EXPECTED), reference_weights=weight(simulated), name="x", ax=left
)
sparker.plots.null_distribution(result, ax=middle)
sparker.plots.p_by_family(result, ax=right)
figure.savefig(OUTPUT / "published_search.png")

# %%
# Where, and which events
# -----------------------
# The learned log density ratio f(x) rises towards the bump. It is smooth: the width that stands out
# most is a wide one here.
x = np.linspace(0, 10, 500)
figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
axes.plot(x, result.log_ratio(x[:, None]), color="k")
axes.axvspan(6.4 - 0.32, 6.4 + 0.32, color=sparker.plots.REFERENCE, label="the signal, two sigma")
axes.set(xlabel="x", ylabel="log density ratio f(x), data to background")
axes.legend()

most_anomalous = data[result.ranking[:12], 0]
print("the twelve most anomalous events:", np.sort(most_anomalous).round(2))
print("of the signal:", int(np.sum(result.ranking[:12] >= len(background))))
result.report(
    OUTPUT / "published_search_report.html",
    names=[f"event {i}" for i in range(len(data))],
    title="Is there anything in the spectrum beside the background?",
)

# %%
# The report: `published_search_report.html <published_search_report.html>`_.
