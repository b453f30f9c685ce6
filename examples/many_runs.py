"""
Twenty-four runs, and which of them differ
==========================================

A detector took twenty-four runs of sixty events. In three of them a part of it was noisy. Tested
one by one at 5 %, a good run would be called bad as well, on average. Which runs belong on a list
of which at most a tenth is wrong?

And the other way round: of three simulations, which is closest to all good events together?
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import sparker

OUTPUT = Path("output")
OUTPUT.mkdir(exist_ok=True)
N_RUNS, SIZE, NOISY = 24, 60, (7, 13, 21)

# %%
# A reference, and runs
# ---------------------
rng = np.random.default_rng(0)


def events(n):
    """Two numbers that hang together, and a third."""
    x = rng.normal(size=(n, 3))
    x[:, 1] += 0.7 * x[:, 0]
    return x


reference = events(2_000)
runs = {f"run {number:02d}": events(SIZE) for number in range(N_RUNS)}
for number in NOISY:
    runs[f"run {number:02d}"][:12] = [2.0, 0.0, 1.0] + 0.1 * rng.normal(size=(12, 3))

# %%
# The list
# --------
# One run alone among twenty-four is listed if its p-value is at most 0.1 / 24; there are as many
# toys as that needs, and runs that do not differ stop early.
found = sparker.test_many(reference, runs, fdr=0.1, progress=False)
n_right = sum(int(name.split()[1]) in NOISY for name in found.found)
print(f"listed: {', '.join(found.found)}; {n_right} of {len(found.found)} are noisy")
table = found.table()
for name, p, q in list(zip(table["sample"], table["p_value"], table["q_value"], strict=True))[:6]:
    print(f"{name}: p = {p:.3f}, q = {q:.3f}")
found.report(OUTPUT / "many_runs_report.html", title="Which runs differ from the reference?")

# %%
# Which simulation is closest?
# ----------------------------
good = np.concatenate([rows for name, rows in runs.items() if name not in found.found])[:1000]
made = {
    "as it is": events(1000),
    "without correlation": rng.normal(size=(1000, 3)) * [1, 1.22, 1],
    "too wide": 1.3 * events(1000),
}
closest = sparker.closest(good, made, progress=False)
print(closest.summary())

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
is_noisy = np.isin(table["sample"], [f"run {number:02d}" for number in NOISY])
order = np.argsort(np.argsort(table["p_value"], kind="stable"))
left.scatter(order[~is_noisy], np.asarray(table["p_value"])[~is_noisy], s=12, label="good")
left.scatter(order[is_noisy], np.asarray(table["p_value"])[is_noisy], s=24, c="C3", label="noisy")
left.set(xlabel="run, by its p-value", ylabel="p-value", yscale="log")
left.legend()
for place, one in enumerate(closest.candidates):
    low, high = one.interval
    right.plot([low, high], [place, place], color="C0")
    right.plot(one.distance, place, "o", color="C0")
right.set(yticks=range(3), yticklabels=[one.name for one in closest.candidates])
right.set(xlabel="distance from the good events")
figure.savefig(OUTPUT / "many_runs.png")

# %%
# The report: `many_runs_report.html <many_runs_report.html>`_, with a card for each run. What the
# list promises, and what the intervals of distances cover, is on the page about many samples.
