"""
Generated pictures against photographs
======================================

Somebody offers more pictures of the kind you have: are they like yours? Here are four sets. Two are
generated, by simple models that have learned from other photographs; one has photographs that were
compressed and opened again; and one is more photographs, as a check that nothing is found in them.
Which sets are told apart, by which pictures, and which generator comes closest?

The photographs are those of CIFAR-10; the generators learned from its training pictures, all
questions are asked of its test pictures. What is needed is in
``examples/requirements/generated_images.txt``, a file among it. Pictures by another generator come
in as an array of bytes (n, 32, 32, 3), such as a part of CIFAR-5m: ``--generated part0.npz``.
"""

import io
from pathlib import Path

import _cifar
import _recipe
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

import sparker
from sparker.embed.efficientnet import EfficientNet

recipe = _recipe.begin(
    "generated_images",
    generated={"type": Path, "metavar": "FILE", "help": "an .npz whose X are pictures"},
)
N_REFERENCE, N_DATA, N_LEARN, N_TOYS, SIDE = 800, 200, 5000, 100, 96
if recipe.full:
    N_REFERENCE, N_DATA, N_LEARN, N_TOYS, SIDE = 6000, 1500, 10_000, 200, 224


# %%
# Photographs, and those who imitate them
# ---------------------------------------
# A picture of 32 by 32 pixels is 3,072 numbers, and most of what varies lies along a hundred
# directions. One generator draws along them from a normal distribution, the other from a mixture of
# forty.
def normal(learned, n, rng, n_directions=100):
    """Pictures along the main directions of those learned from, drawn from one normal."""
    directions = PCA(n_directions, random_state=0).fit(learned.reshape(len(learned), -1))
    spread = np.sqrt(directions.explained_variance_)
    drawn = rng.normal(size=(n, n_directions)) * spread
    return as_pictures(directions.inverse_transform(drawn))


def mixture(learned, n, n_directions=100, n_normals=40):
    """The same, drawn from a mixture of normals."""
    directions = PCA(n_directions, random_state=0)
    along = directions.fit_transform(learned.reshape(len(learned), -1))
    model = GaussianMixture(n_normals, covariance_type="diag", random_state=0).fit(along)
    return as_pictures(directions.inverse_transform(model.sample(n)[0]))


def compressed(pictures, quality=50):
    """Each as a JPEG file, opened again."""
    found = []
    for one in pictures:
        file = io.BytesIO()
        Image.fromarray(one).save(file, "JPEG", quality=quality)
        found.append(np.asarray(Image.open(file)))
    return np.stack(found)


def as_pictures(numbers):
    """Bytes of 32 by 32 pixels in three colours; what is darker than black is black."""
    return np.clip(np.round(numbers), 0, 255).astype(np.uint8).reshape(-1, 32, 32, 3)


def pictures_of(path, n, rng):
    """Some pictures of a file, as CIFAR-5m has them."""
    try:
        with np.load(path, allow_pickle=False) as file:
            found = file["X"]
    except (OSError, ValueError, KeyError, IndexError) as error:
        _recipe.stop(f"{path} has no pictures: {error}")
    if found.dtype != np.uint8 or found.shape[1:] != (32, 32, 3) or len(found) < n:
        _recipe.stop(f"X must be {n} or more pictures of bytes (n, 32, 32, 3), got {found.shape}")
    return found[np.sort(rng.choice(len(found), n, replace=False))]


rng = np.random.default_rng(0)
file = _recipe.fetched("generated_images")
learned = _cifar.photographs(file, "data_batch_1")[:N_LEARN].astype(np.float32)
photographs = rng.permutation(_cifar.photographs(file))
reference, other, more = np.split(photographs, np.cumsum([N_REFERENCE, N_DATA, N_DATA]))[:3]
samples = {
    "photographs": other,
    "compressed": compressed(more),
    "mixture": rng.permutation(mixture(learned, N_DATA)),  # it draws normal after normal
    "normal": normal(learned, N_DATA, rng),
}
if recipe.options.generated is not None:
    samples["given"] = pictures_of(recipe.options.generated, N_DATA, rng)

folder = _recipe.OUTPUT / "generated_images"
for name, pictures in {"reference": reference, **samples}.items():
    _cifar.write(folder / name, pictures)

# %%
# Is each set told apart?
# -----------------------
# The network's 1,280 features of each picture, embedded once: what was embedded before is known
# again by its content.
network = EfficientNet(side=SIDE)
results = {
    name: sparker.test(folder / "reference", folder / name, embed=network, n_toys=N_TOYS)
    for name in samples
}
for name, result in results.items():
    print(f"{name:12} p = {result.p_value:.3f}, at least {result.at_least} of {N_DATA} rows differ")

# %%
# By which pictures?
# ------------------
# Of each set, six at random and the six that are least like photographs. Some come first in any
# set: among photographs, where p is large, that means nothing.
size = 10, 0.9 * len(samples)
figure, axes = plt.subplots(len(samples), 13, figsize=size, layout="constrained")
for line, (name, result) in zip(axes, results.items(), strict=True):
    rows = [*range(6), None, *result.ranking[:6]]
    for row, ax in zip(rows, line, strict=True):
        ax.set(xticks=[], yticks=[])
        if row is None:
            ax.axis("off")
        else:
            ax.imshow(samples[name][row])
    line[0].set_ylabel(name, fontsize=8, rotation=0, ha="right")
axes[0, 2].set_title("any")
axes[0, 9].set_title("called most anomalous")
figure.savefig(_recipe.OUTPUT / "generated_images.png")


# %%
# Which comes closest?
# --------------------
# How far each set is from the photographs, on pictures that were not fitted: twice the
# Kullback-Leibler divergence, as far as kernels see it, about 0 for a perfect generator.
def features(name):
    """What was embedded above, as numbers."""
    return network.encode(sorted((folder / name).glob("*.png")))


found = sparker.closest(features("reference"), {name: features(name) for name in samples})
print(found.summary())
figure, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
for place, one in enumerate(found.candidates):
    ax.plot(one.interval, [place, place], "k")
    ax.plot(one.distance, place, "ko")
ax.axvline(0, color="0.7")
ax.set(
    xlabel="distance from the photographs, with its interval",
    yticks=range(len(found.candidates)),
    yticklabels=[one.name for one in found.candidates],
)
ax.invert_yaxis()
figure.savefig(_recipe.OUTPUT / "generated_images_closest.png")

# %%
results["compressed"].report(recipe.report, title="Were these photographs compressed on their way?")
recipe.record(
    sizes={"reference": N_REFERENCE, "each set": N_DATA, "learned from": N_LEARN,
           "toys": N_TOYS, "pixels": SIDE},
    tests={name: {"p_value": one.p_value, "at_least": one.at_least}
           for name, one in results.items()},
    closest=[{"name": one.name, "distance": one.distance, "interval": list(one.interval)}
             for one in found.candidates],
    is_sure=found.is_sure,
)  # fmt: skip

# %%
# The report of those that were compressed:
# `generated_images_report.html <generated_images_report.html>`_.
