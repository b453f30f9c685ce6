"""
A Higgs boson among jets
========================

Protons collide, and nearly every jet of particles that comes out is the spray of one quark or
gluon. A few are a Higgs boson that flew so fast that the two bottom quarks it decayed to went into
one jet. Take jets that are known to be ordinary, by simulation or from a place where there can be
nothing else, and jets in question: is there anything else among them, and what mass does it have?

Collisions are simulated by Pythia, jets found by FastJet. Needs
``pip install -r examples/requirements/jets.txt``. Making the jets takes two minutes; they are kept
in ``examples/output``, and the next run begins with them.
"""

import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np
from _recipe import OUTPUT, begin

import sparker

recipe = begin("jets")
import awkward as ak
import fastjet
import pythia8mc

N_REFERENCE, N_DATA, N_HIGGS, N_TOYS = (
    (20_000, 8000, 320, 1000) if recipe.full else (5000, 2000, 160, 100)
)

# %%
# Collisions
# ----------
# Proton on proton at 13 TeV, as Pythia has it by default: hadrons, and several interactions of
# partons in a collision. No detector, and no two collisions at a time. Ordinary jets are those of
# two partons that scatter. The others are of a Higgs boson beside a Z boson that goes to neutrinos,
# so that the Higgs boson's jet is the only hard one. Both are asked to scatter with a transverse
# momentum of 425 to 700 GeV, since hardly any collision would have such a jet by itself.
PROCESS = {
    "ordinary": ["HardQCD:all = on"],
    "higgs": [
        *("HiggsSM:ffbar2HZ = on", "25:onMode = off", "25:onIfMatch = 5 -5"),
        *("23:onMode = off", "23:onIfAny = 12 14 16"),
    ],
}
SEED = {"ordinary": 1, "higgs": 2}
COMPONENTS = ("px", "py", "pz", "E")
RADIUS, LOWEST, HIGHEST = 0.8, 450, 600  # of jets; GeV of transverse momentum


def asked_of_pythia(kind):
    """All that decides which collisions are made."""
    return [
        *("Print:quiet = on", "Random:setSeed = on", f"Random:seed = {SEED[kind]}"),
        *("Beams:eCM = 13000", "PhaseSpace:pTHatMin = 425", "PhaseSpace:pTHatMax = 700"),
        *PROCESS[kind],
    ]


# %%
# Jets
# ----
# All visible particles up to a pseudorapidity of 3 are clustered by the anti-kt algorithm. Of each
# collision the jet with the highest transverse momentum is kept, if that is between 450 and
# 600 GeV: one jet a collision, so that rows are independent of each other.
def leading_jets(events):
    """The particles of each leading jet in one array, and how many there are in each."""
    particles = events.prt
    kind = abs(particles.id)
    visible = (particles.status > 0) & (kind != 12) & (kind != 14) & (kind != 16)
    p = particles.p[visible]
    p = p[abs(p.pz) < np.sinh(3) * np.hypot(p.px, p.py)]
    p = ak.zip({"px": p.px, "py": p.py, "pz": p.pz, "E": p.e}, with_name="Momentum4D")
    clustered = fastjet.ClusterSequence(p, fastjet.JetDefinition(fastjet.antikt_algorithm, RADIUS))
    jets, constituents = clustered.inclusive_jets(200.0), clustered.constituents(200.0)
    pt = np.hypot(jets.px, jets.py)
    first = ak.argmax(pt, axis=1, keepdims=True)
    wanted = (pt > LOWEST) & (pt < HIGHEST) & (abs(jets.pz) < np.sinh(2) * pt)
    kept = ak.fill_none(wanted[first], False)
    of_jets = ak.drop_none(ak.flatten(constituents[first][kept], axis=1))
    flat = ak.flatten(of_jets)
    return np.stack([ak.to_numpy(flat[name]) for name in COMPONENTS], 1), ak.to_numpy(
        ak.num(of_jets)
    )


def simulated(kind, n):
    """``n`` such jets, made or taken from the file of an earlier run."""
    asked = "; ".join([*asked_of_pythia(kind), f"R {RADIUS}, {LOWEST} to {HIGHEST} GeV, {n} jets"])
    path = OUTPUT / f"jets_{kind}_{n}.npz"
    if path.exists():
        with np.load(path, allow_pickle=False) as kept:
            if str(kept["asked"]) == asked:
                return kept["momenta"].astype(float), kept["counts"]
    print(f"making {n} jets, which are kept in {path.name}", file=sys.stderr)
    generator, parts, n_made = pythia8mc.Pythia("", False), [], 0
    for line in asked_of_pythia(kind):
        generator.readString(line)
    generator.init()
    while n_made < n:
        parts.append(leading_jets(generator.nextBatch(500)))
        n_made += len(parts[-1][1])
    momenta, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
    counts = counts[:n]
    momenta = momenta[: counts.sum()].astype(np.float32)
    np.savez(path, momenta=momenta, counts=counts, asked=asked)
    return momenta.astype(float), counts


ordinary = simulated("ordinary", N_REFERENCE + N_DATA - N_HIGGS)
higgs = simulated("higgs", N_HIGGS)


# %%
# Seven numbers a jet
# -------------------
# What a jet consists of is a list of momenta, of any length. These are usual ways to describe it:
#
# - its mass, and its mass after grooming: soft particles at its edge are taken away, until it falls
#   into two parts of which the softer one has a tenth of the momentum at least (soft drop);
# - tau21: how much better two axes describe where the particles go than one;
# - D2 = e3 / e2^3, of energy correlations of pairs and triples of particles: small for two prongs;
# - the number of particles, the width, and how unequally the momentum is shared among them.
def padded(momenta, counts):
    """Jets of similar length together, filled up with zeros: their numbers and (n, K, 4)."""
    ends = np.cumsum(counts)
    by_length = np.argsort(counts, kind="stable")
    for first in range(0, len(counts), 250):
        rows = by_length[first : first + 250]
        block = np.zeros((len(rows), counts[rows].max(), 4))
        for jet, row in zip(block, rows, strict=True):
            jet[: counts[row]] = momenta[ends[row] - counts[row] : ends[row]]
        yield rows, block


def mass(p):
    """Of a four-momentum (..., 4)."""
    return np.sqrt(np.maximum(p[..., 3] ** 2 - np.sum(p[..., :3] ** 2, -1), 0))


def polar(p):
    """Transverse momentum, rapidity and azimuth; a momentum of zero lies at zero."""
    pt = np.hypot(p[..., 0], p[..., 1])
    there = p[..., 3] > 0
    ratio = np.where(there, p[..., 2] / np.where(there, p[..., 3], 1), 0)
    return pt, np.arctanh(ratio), np.arctan2(p[..., 1], p[..., 0])


def distances(one, other):
    """In rapidity and azimuth, of all particles and all others: (n, K, L)."""
    (_, y, phi), (_, other_y, other_phi) = one, other
    turn = np.abs(phi[:, :, None] - other_phi[:, None])
    return np.hypot(y[:, :, None] - other_y[:, None], np.minimum(turn, 2 * np.pi - turn))


def correlations(z, distance):
    """e2 and e3: sums over pairs and triples of shares of momentum times all distances."""
    root = np.sqrt(z)
    pairs = root[:, :, None] * distance * root[:, None]
    e2 = np.sum(root * (pairs @ root[:, :, None])[:, :, 0], 1) / 2
    return e2, np.sum((pairs @ pairs) * pairs, (1, 2)) / 6  # the trace of the third power


def subjettiness(z, particles, axes):
    """The mean distance to the nearest axis."""
    return np.sum(z * distances(particles, polar(axes)).min(2), 1)


def clustered_again(momenta, counts, algorithm):
    """Each jet by itself, clustered until one is left."""
    columns = dict(zip(COMPONENTS, momenta.T, strict=True))
    jets = ak.unflatten(ak.zip(columns, with_name="Momentum4D"), counts)
    return fastjet.ClusterSequence(jets, fastjet.JetDefinition(algorithm, 10.0))


def observables(momenta, counts):
    """The seven numbers, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # FastJet's, of other algorithms
        parts = clustered_again(momenta, counts, fastjet.kt_algorithm).exclusive_jets(n_jets=2)
    two = np.stack([ak.to_numpy(parts[name]) for name in COMPONENTS], -1)
    dropped = clustered_again(momenta, counts, fastjet.cambridge_algorithm)
    groomed = dropped.exclusive_jets_softdrop_grooming(beta=0.0, symmetry_cut=0.1, R0=RADIUS)
    found = {name: np.empty(len(counts)) for name in ("mass", "tau21", "log D2", "width", "ptD")}
    for rows, block in padded(momenta, counts):
        whole, particles = block.sum(1), polar(block)
        z = particles[0] / particles[0].sum(1, keepdims=True)
        e2, e3 = correlations(z, distances(particles, particles))
        width = subjettiness(z, particles, whole[:, None])
        found["mass"][rows] = mass(whole)
        found["tau21"][rows] = subjettiness(z, particles, two[rows]) / width
        found["log D2"][rows] = np.log(e3 / e2**3)
        found["width"][rows] = width
        found["ptD"][rows] = np.sqrt(np.sum(z**2, 1))
    by_grooming = {"mass": found["mass"], "groomed mass": ak.to_numpy(groomed.msoftdrop)}
    return {**by_grooming, **found, "particles": counts.astype(float)}


# %%
# Reference and data
# ------------------
# Some of the jets in question are of a Higgs boson; which, only this page knows.
rng = np.random.default_rng(0)
of_ordinary, of_higgs = observables(*ordinary), observables(*higgs)
n_ordinary = N_DATA - N_HIGGS
order = rng.permutation(N_DATA)
is_higgs = (np.arange(N_DATA) >= n_ordinary)[order]
reference = {name: values[n_ordinary:] for name, values in of_ordinary.items()}
data = {
    name: np.concatenate([values[:n_ordinary], of_higgs[name]])[order]
    for name, values in of_ordinary.items()
}
print(f"{N_HIGGS} of {N_DATA} jets are of a Higgs boson, {N_HIGGS / N_DATA:.0%}")

# %%
# The test
# --------
result = sparker.test(reference, data, n_toys=N_TOYS)
print(result.summary())

# %%
# What mass
# ---------
# The highest rows, and the first region. Pythia's Higgs boson has 125 GeV; what neutrinos carry
# away of it is lost, and what comes from the rest of the collision is added.
highest = result.ranking[:50]
for k in (50, N_HIGGS):
    planted = is_higgs[result.ranking[:k]].sum()
    print(f"of the {k} highest rows {planted} are of a Higgs boson")
low, median, high = np.quantile(data["mass"][highest], [0.25, 0.5, 0.75])
print(f"mass of the 50 highest rows: {median:.0f} GeV (half of them {low:.0f} to {high:.0f} GeV)")
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
bins = np.arange(0, 301, 10)
scale = np.full(N_REFERENCE, N_DATA / N_REFERENCE)
left.hist(reference["mass"], bins, weights=scale, color="0.8", label="reference, scaled")
left.hist(data["mass"], bins, histtype="step", color="k", label="data")
left.hist(data["mass"][highest], bins, color="C3", label="the 50 highest rows")
left.axvline(125, color="k", lw=0.8, ls=":")
left.set(xlabel="mass of the jet [GeV]", ylabel="jets")
left.legend()
for these, style in ((~is_higgs, {"color": "0.7", "s": 4}), (is_higgs, {"color": "C3", "s": 8})):
    right.scatter(data["mass"][these], data["log D2"][these], **style)
right.scatter(
    data["mass"][highest], data["log D2"][highest], s=40, facecolors="none", edgecolors="k"
)
right.set(xlim=(0, 300), xlabel="mass of the jet [GeV]", ylabel="log D2")
right.set_title("red: of a Higgs boson; rings: the highest rows", fontsize="medium")
figure.savefig(OUTPUT / "jets.png")


# %%
# How a jet of the highest rows looks: where its particles went, seen from the collision, and how
# much momentum they carried. An ordinary jet has one core, a Higgs boson two.
def picture(p):
    """The logarithm of the momentum in 16 x 16 cells of rapidity and azimuth around a jet."""
    pt, y, phi = polar(p)
    _, middle_y, middle_phi = polar(p.sum(0))
    turn = (phi - middle_phi + np.pi) % (2 * np.pi) - np.pi
    cells = np.linspace(-RADIUS, RADIUS, 17)
    seen, _, _ = np.histogram2d(y - middle_y, turn, (cells, cells), weights=pt)
    return (np.log1p(seen) / np.log1p(LOWEST)).astype(np.float32)


def jets_of(momenta, counts):
    """The particles of each jet."""
    return np.split(momenta, np.cumsum(counts)[:-1])


jets = [*jets_of(*ordinary)[:n_ordinary], *jets_of(*higgs)]
pictures = [picture(jets[i]) for i in order]
figure, axes = plt.subplots(2, 8, figsize=(10, 2.8), layout="constrained")
lowest = result.ranking[-8:]
for row, ax in zip([*highest[:8], *lowest], axes.flat, strict=True):
    ax.imshow(pictures[row], cmap="gray_r", vmin=0, vmax=0.9)
    ax.set(xticks=[], yticks=[])
axes[0, 0].set_ylabel("highest")
axes[1, 0].set_ylabel("lowest")
figure.savefig(OUTPUT / "jets_pictures.png")

# %%
# With fewer jets
# ---------------
# How many jets does this need? The same share among fewer of them is easily missed: 40 Higgs bosons
# among 500 jets, compared with 1,400. These are parts of what is here, which share no jet.
few = []
for part in range(min(N_REFERENCE // 1400, n_ordinary // 460, N_HIGGS // 40)):
    other, ours = np.arange(1400) + 1400 * part, np.arange(460) + 460 * part
    bosons, mixed = np.arange(40) + 40 * part, rng.permutation(500)
    found = sparker.test(
        {name: values[other] for name, values in reference.items()},
        {
            name: np.concatenate([values[ours], of_higgs[name][bosons]])[mixed]
            for name, values in of_ordinary.items()
        },
        n_toys=100,
        explain=False,
    )
    few.append(found.p_value)
print(f"all jets: p = {result.p_value:.2g}; 1,400 and 500 of them: p =", end=" ")
print(", ".join(f"{p:.2g}" for p in few))
print(f"missed at 5 %: {sum(p > 0.05 for p in few)} of {len(few)}")

# %%
# The report
# ----------
# Beside each row stands its picture.
result.report(
    recipe.report,
    names=[f"jet {i}" for i in range(N_DATA)],
    texts=["planted: a Higgs boson" if planted else "ordinary" for planted in is_higgs],
    images=pictures,
    title="Is there anything but ordinary jets?",
)
regions = result.regions()
recipe.record(
    n_reference=N_REFERENCE,
    n_data=N_DATA,
    n_higgs=N_HIGGS,
    n_toys=N_TOYS,
    seed=0,
    p_value=result.p_value,
    at_least=result.at_least,
    region=str(regions["rule"][0]) if len(regions["rule"]) else None,
    higgs_among_the_highest={k: int(is_higgs[result.ranking[:k]].sum()) for k in (10, 50, N_HIGGS)},
    median_mass_of_the_50_highest=round(float(median), 1),
    quartiles_of_their_mass=[round(float(low), 1), round(float(high), 1)],
    p_values_of_1400_and_500=few,
)

# %%
# `jets_report.html <jets_report.html>`_.
