"""
Which rows of my training set are unlike production?
====================================================

A classifier is trained on a set of rows that was put together over years, and is used on rows that
come from one source. Some of the training rows are not what will ever be asked: here, pictures of
digits that lie two pixels off their place, what left the frame at one side coming in at the other.
Nobody has marked them. Compared with unlabelled rows of production they can be listed, with a
known share of mistakes, and left out before training.

The digits are those that come with scikit-learn.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB

import sparker

OUTPUT = Path("output")
OUTPUT.mkdir(exist_ok=True)

# %%
# Two sets of rows
# ----------------
# 900 rows that production has seen, without labels; 500 rows to train on, of which 50 are off
# their place. The rest is kept to see what cleaning is good for.
digits = load_digits()
order = np.random.default_rng(1).permutation(len(digits.data))
seen, train, kept = np.split(order, [900, 1400])
production = digits.data[seen]
training, label = digits.data[train].copy(), digits.target[train]
is_off = np.random.default_rng(2).permutation(len(training)) < 50
training[is_off] = np.roll(training[is_off].reshape(-1, 8, 8), 2, axis=2).reshape(-1, 64)

# %%
# The test, the other way round
# -----------------------------
# Production is the reference: it is what rows should be like. The training set is the data.
result = sparker.test(
    production,
    training,
    n_toys=100,
    preprocess=sparker.unchanged,  # pixels share one scale
)
print(result.summary())

# %%
# A list with a known share of mistakes
# -------------------------------------
# At a false discovery rate of 20 %, at most one row in five of such lists is an ordinary one, on
# average over samples.
suspects = np.asarray(result.rows(fdr=0.2)["row"])
print(f"{len(suspects)} rows are listed, {is_off[suspects].sum()} of them are off their place")

figure, axes = plt.subplots(4, 12, figsize=(10, 3.6), layout="constrained")
for row, ax in zip(suspects, axes.flat, strict=False):
    ax.imshow(training[row].reshape(8, 8), cmap="gray_r")
for ax in axes.flat:
    ax.axis("off")
figure.suptitle("the first rows of the list")
figure.savefig(OUTPUT / "clean_training_rows.png")


# %%
# The cleaning step
# -----------------
# What is it worth? The same classifier, trained on all rows, without the rows of the list, without
# as many random rows, and without all that are off their place, which only who moved them can
# leave out.
def accuracy(rows):
    """Of a classifier trained on these rows, on rows that nobody has seen."""
    model = GaussianNB(var_smoothing=0.01).fit(training[rows], label[rows])
    return model.score(digits.data[kept], digits.target[kept])


everything = np.arange(len(training))
random = np.random.default_rng(2).choice(everything, len(suspects), replace=False)
for name, left_out in {
    "nothing": [],
    "the list": suspects,
    "as many random rows": random,
    "all that are off": np.flatnonzero(is_off),
}.items():
    print(f"left out: {name:25} accuracy {accuracy(np.delete(everything, left_out)):.3f}")

# %%
# As a step of a pipeline it is three lines. The report shows the rows, to be looked at before
# anything is thrown away: a row that is unlike production may as well be the one that production
# will need tomorrow.
result.report(
    OUTPUT / "clean_training_rows_report.html",
    images=list(16 - training.reshape(-1, 8, 8)),
    texts=[f"labelled {one}" for one in label],
    title="Which training rows are unlike production?",
)

# %%
# The report: `clean_training_rows_report.html <clean_training_rows_report.html>`_.
#
# A list needs some rows to be listed: with few anomalous rows it is often empty (at 20 %, it takes
# five), and what looks like ordinary rows cannot be listed at all: sixty of these digits turned
# upside down were noticed, but none listed.
