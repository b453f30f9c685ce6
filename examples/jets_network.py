"""
A Higgs boson among jets, seen by a network
===========================================

The page *A Higgs boson among jets* described each jet by seven numbers that physicists chose, the
mass among them. Here nothing is chosen: the jets are shown to ParticleNet, a network of others that
was trained to tell gluons, light quarks, top quarks, W and Z bosons apart. It has never seen a
Higgs boson, and is not told any mass. What it makes of a jet before it decides, 256 numbers, is
what is tested. The mass is used afterwards, to see what was found.

The jets are those that ``python examples/jets.py`` made, which has to be run before. Needs
``pip install -r examples/requirements/jets_network.txt``; of ``jetnet`` only the file of weights is
read, so ``pip install --no-deps jetnet==0.2.5`` is enough, and PyTorch is not needed.
"""

import sys

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from _recipe import OUTPUT, begin

import sparker
from sparker.embed.torch_file import read_tensors
from sparker.embed.weights import Packaged, path_of

recipe = begin("jets_network")
N_REFERENCE, N_DATA, N_HIGGS, N_TOYS = (
    (20_000, 8000, 320, 1000) if recipe.full else (5000, 2000, 160, 100)
)


# %%
# The jets
# --------
def kept(kind, n):
    """The particles of each jet, from the file of the other recipe."""
    path = OUTPUT / f"jets_{kind}_{n}.npz"
    if not path.exists():
        command = "python examples/jets.py" + " --full" * recipe.full
        print(
            f"jets_network.py needs the jets that another recipe makes: {command}", file=sys.stderr
        )
        raise SystemExit(2)
    with np.load(path, allow_pickle=False) as file:
        return np.split(file["momenta"].astype(float), np.cumsum(file["counts"])[:-1])


n_ordinary = N_DATA - N_HIGGS
ordinary = kept("ordinary", N_REFERENCE + n_ordinary)
jets = [*ordinary[n_ordinary:], *ordinary[:n_ordinary], *kept("higgs", N_HIGGS)]
order = np.random.default_rng(0).permutation(N_DATA)  # rows have the numbers of the other page
is_higgs = (np.arange(N_DATA) >= n_ordinary)[order]


# %%
# The network's eyes
# ------------------
# It looks at the thirty hardest particles: how far each lies from the jet's axis, in pseudorapidity
# and azimuth, and which share of the momentum it has; each divided by the largest value of the
# network's training set.
N_PARTICLES, N_NEIGHBOURS = 30, 16
LARGEST = np.array([1.6211985349655151, 0.520724892616272, 0.8934717178344727])
SHIFT = np.array([0.0, 0.0, -0.5])


def shown(p):
    """A jet (K, 4) as the network was trained to see it: (30, 3)."""

    def polar(p):
        pt = np.hypot(p[..., 0], p[..., 1])
        return pt, np.arcsinh(p[..., 2] / pt), np.arctan2(p[..., 1], p[..., 0])

    (pt, eta, phi), (jet_pt, jet_eta, jet_phi) = polar(p), polar(p.sum(0))
    turn = (phi - jet_phi + np.pi) % (2 * np.pi) - np.pi
    hardest = np.argsort(-pt)[:N_PARTICLES]
    seen = np.stack([eta - jet_eta, turn, pt / jet_pt], 1)[hardest]
    return np.pad(seen, ((0, N_PARTICLES - len(seen)), (0, 0))) / LARGEST + SHIFT


# %%
# In three rounds each particle is described anew by what it sees of its sixteen nearest particles:
# near in angle at first, later in what the round before said of them. The weights are in a file
# that PyTorch wrote. It is read without PyTorch, and without running anything that it says.
def rounds(tensors):
    """Weights and biases of the layers of each round, the batch normalisation included."""

    def layer(name, k):
        gain, shift, mean, variance = (
            tensors[f"{name}.{k + 1}.{part}"]
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        scale = gain / np.sqrt(variance + 1e-5)
        bias = (tensors[f"{name}.{k}.bias"] - mean) * scale + shift
        return tensors[f"{name}.{k}.weight"].T * scale, bias

    return [[layer(f"edge_nets.{i}.model", k) for k in (0, 3, 6)] for i in range(3)]


def activations(tensors, x):
    """What ParticleNet makes of one jet (30, 3) before it decides: (256,)."""
    for number, layers in enumerate(rounds(tensors)):
        place = x[:, :2] if number == 0 else x
        apart = jnp.sum((place[:, None] - place) ** 2, -1)  # (30, 30)
        _, near = jax.lax.top_k(-apart - jnp.diag(jnp.full(len(x), jnp.inf)), N_NEIGHBOURS)
        own = jnp.broadcast_to(x[:, None], (*near.shape, x.shape[1]))
        seen = jnp.concatenate([own, x[near] - own], -1)  # (30, 16, 2 d)
        for weight, bias in layers:
            seen = jax.nn.relu(seen @ weight + bias)
        x = jnp.concatenate([seen.mean(1), x], -1)
    return x.mean(0) @ tensors["fc1.0.weight"].T + tensors["fc1.0.bias"]


WEIGHTS = Packaged(
    "jetnet",
    "evaluation/fpnd_resources/jetnet/30_particles/pnet_state_dict.pt",
    "1dabf0e64088840d2d46ca6168a34957c555f0b2419b8d4ea5f70b4108f86f98",
    "--no-deps jetnet==0.2.5",
)
tensors = read_tensors(path_of(WEIGHTS))
look = jax.jit(jax.vmap(lambda x: activations(tensors, x)))
seen = np.stack([shown(p) for p in jets]).astype(np.float32)
block = 50
numbers = np.concatenate([look(seen[i : i + block]) for i in range(0, len(seen), block)])
mass = np.array([np.sqrt(max(p[3] ** 2 - p[:3] @ p[:3], 0)) for p in (jet.sum(0) for jet in jets)])
reference, data = numbers[:N_REFERENCE], numbers[N_REFERENCE:][order]
reference_mass, data_mass = mass[:N_REFERENCE], mass[N_REFERENCE:][order]
print(f"{len(numbers)} jets, {numbers.shape[1]} numbers each")

# %%
# The test
# --------
result = sparker.test(reference, data, n_toys=N_TOYS)
print(result.summary())

# %%
# What mass
# ---------
# Nobody told the network. The highest rows have it all the same.
highest = result.ranking[:50]
for k in (50, N_HIGGS):
    planted = is_higgs[result.ranking[:k]].sum()
    print(f"of the {k} highest rows {planted} are of a Higgs boson")
low, median, high = np.quantile(data_mass[highest], [0.25, 0.5, 0.75])
print(f"mass of the 50 highest rows: {median:.0f} GeV (half of them {low:.0f} to {high:.0f} GeV)")
print(f"mass of all data: {np.median(data_mass):.0f} GeV")

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
bins = np.arange(0, 301, 10)
scale = np.full(N_REFERENCE, N_DATA / N_REFERENCE)
ax.hist(reference_mass, bins, weights=scale, color="0.8", label="reference, scaled")
ax.hist(data_mass, bins, histtype="step", color="k", label="data")
ax.hist(data_mass[highest], bins, color="C3", label="the 50 highest rows")
ax.axvline(125, color="k", lw=0.8, ls=":")
ax.set(xlabel="mass of the jet [GeV]", ylabel="jets")
ax.legend()
figure.savefig(OUTPUT / "jets_network.png")

# %%
# The report
# ----------
# The mass goes into it as an observable: shown, but not tested.
result.report(
    recipe.report,
    names=[f"jet {i}" for i in range(N_DATA)],
    texts=["planted: a Higgs boson" if planted else "ordinary" for planted in is_higgs],
    observables={"mass [GeV]": data_mass},
    reference_observables={"mass [GeV]": reference_mass},
    title="Does a network see anything but ordinary jets?",
)
recipe.record(
    n_reference=N_REFERENCE,
    n_data=N_DATA,
    n_higgs=N_HIGGS,
    n_toys=N_TOYS,
    seed=0,
    p_value=result.p_value,
    at_least=result.at_least,
    higgs_among_the_highest={k: int(is_higgs[result.ranking[:k]].sum()) for k in (10, 50, N_HIGGS)},
    median_mass_of_the_50_highest=round(float(median), 1),
    quartiles_of_their_mass=[round(float(low), 1), round(float(high), 1)],
    median_mass_of_all_data=round(float(np.median(data_mass)), 1),
)

# %%
# `jets_network_report.html <jets_network_report.html>`_.
