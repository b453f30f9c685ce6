"""
Mergers of black holes in the noise of two detectors
====================================================

Two interferometers listen for hours. What they record is noise, and perhaps, in a few of a
thousand pieces of four seconds, a merger of two black holes. No list of waveforms to look for is
used here: the pieces are compared with pieces that are known to be noise, and the question is
whether there is anything else in them, and in which.

The noise follows the design sensitivity of Advanced LIGO, the waveforms are IMRPhenomD as
``ripplegw`` computes it, and directions, orientations and delays are those of Hanford and
Livingston. Needs ``pip install -r examples/requirements/gravitational_waves.txt``.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np
from _recipe import OUTPUT, begin
from scipy import fft
from scipy.ndimage import maximum_filter1d

import sparker

recipe = begin("gravitational_waves")
import ripplegw

jax.config.update("jax_enable_x64", False)  # ripplegw switches it on for everybody
N_REFERENCE, N_DATA, N_MERGERS, N_TOYS = (
    (40_000, 10_000, 100, 1000) if recipe.full else (4000, 1000, 30, 100)
)

# %%
# The noise
# ---------
# Pieces of four seconds, 1,024 values a second. The spectral density is P. Ajith's fit to the
# zero-detuned high-power design (Phys. Rev. D 84, 084037), one-sided, in 1/Hz.
RATE, SECONDS = 1024, 4
N = RATE * SECONDS
FREQUENCY = fft.rfftfreq(N, 1 / RATE)
IN_BAND = (FREQUENCY >= 20) & (FREQUENCY <= 400)


def design(frequency):
    """The one-sided spectral density of the noise."""
    x = frequency / 245.4
    return 1e-48 * (
        0.0152 * x**-4 + 0.2935 * x**2.25 + 2.7951 * x**1.5 - 6.5080 * x**0.75 + 17.7622
    )


DENSITY = design(np.maximum(FREQUENCY, 20))  # what is below is cut off later


def coloured(rng, n):
    """Strain of both detectors that is noise: (n, 2, N)."""
    white = rng.normal(size=(n, 2, N))
    return fft.irfft(fft.rfft(white) * np.sqrt(DENSITY * RATE / 2), N)


# %%
# Dividing by the root of the density makes all frequencies equally loud again. What is left
# between 20 and 400 Hz has variance one.
def whitened(strain):
    """Strain with its noise made white, of variance one."""
    flat = fft.rfft(strain) / np.sqrt(DENSITY * RATE / 2) * IN_BAND
    return fft.irfft(flat, N) / np.sqrt(2 * IN_BAND.sum() / N)


# %%
# The detectors
# -------------
# Where the corners are and where the arms point, in a frame that is fixed to the Earth. A wave
# from direction k with polarisation angle psi is seen by the difference of the arms, and not at
# the same time: light takes ten milliseconds from one detector to the other.
VERTEX = np.array(  # metres
    [
        [-2.16141492636e6, -3.83469517889e6, 4.60035022664e6],
        [-7.42760447238e4, -5.49628371971e6, 3.22425701744e6],
    ]
)
ARM_X = np.array(
    [
        [-0.22389266154, 0.79983062746, 0.55690487831],
        [-0.95457412153, -0.14158077340, -0.26218911324],
    ]
)
ARM_Y = np.array(
    [
        [-0.91397818574, 0.02609403989, -0.40492342125],
        [0.29774156894, -0.48791033647, -0.82054461286],
    ]
)
LIGHT = 299_792_458.0


def seen(cos_theta, phi, psi):
    """Antenna factors F+ and Fx and the delay after the Earth's centre: (n, 2) each."""
    sin_theta, zero = np.sqrt(1 - cos_theta**2), np.zeros_like(phi)
    k = np.stack([sin_theta * np.cos(phi), sin_theta * np.sin(phi), cos_theta], 1)
    east = np.stack([-np.sin(phi), np.cos(phi), zero], 1)
    north = np.cross(k, east)
    cos_psi, sin_psi = np.cos(psi)[:, None], np.sin(psi)[:, None]
    p, q = cos_psi * east + sin_psi * north, cos_psi * north - sin_psi * east

    def response(u, v):  # of the tensor (x x - y y) / 2 to u v
        return ((u @ ARM_X.T) * (v @ ARM_X.T) - (u @ ARM_Y.T) * (v @ ARM_Y.T)) / 2

    return response(p, p) - response(q, q), 2 * response(p, q), -(k @ VERTEX.T) / LIGHT


# %%
# The mergers
# -----------
# How loud a wave is, is its signal-to-noise ratio: what the best possible filter, which knows the
# waveform, would give. Two black holes of 15 to 50 solar masses with aligned spins, anywhere in the
# sky and in any orientation, are put at the distance at which both detectors together have a
# ratio between 8 and 20. (The first to be seen, GW150914, had 24.)
def signal_to_noise(strain):
    """The optimal ratio of a wave: the root of 4 sum |h(f)|^2 / S(f) df."""
    h = fft.rfft(strain)[..., IN_BAND] / RATE
    return np.sqrt(4 * np.sum(np.abs(h) ** 2 / DENSITY[IN_BAND], -1) / SECONDS)


def mergers(rng, n):
    """Strain of both detectors (n, 2, N), and what was drawn."""
    masses = -np.sort(-rng.uniform(15, 50, (n, 2)))  # the heavier one first
    total, eta = masses.sum(1), masses.prod(1) / masses.sum(1) ** 2
    far = 500.0  # megaparsec, for now
    source = {
        "M_c": total * eta**0.6,
        "eta": eta,
        "s1_z": rng.uniform(-0.5, 0.5, n),
        "s2_z": rng.uniform(-0.5, 0.5, n),
        "d_L": np.full(n, far),
        "phase_c": rng.uniform(0, 2 * np.pi, n),
        "iota": np.arccos(rng.uniform(-1, 1, n)),
    }
    waveform = ripplegw.waveform("IMRPhenomD", f_ref=20.0)
    with jax.enable_x64(True):
        waves = jax.jit(jax.vmap(lambda one: waveform(FREQUENCY[IN_BAND], one)))(source)
    plus, cross, delay = seen(
        rng.uniform(-1, 1, n), rng.uniform(0, 2 * np.pi, n), rng.uniform(0, np.pi, n)
    )
    # The longest inspiral from 20 Hz takes three seconds; it must not begin before the piece does.
    arrival = rng.uniform(3.1, 3.7, n)[:, None] + delay
    spectrum = np.zeros((n, 2, len(FREQUENCY)), complex)
    spectrum[..., IN_BAND] = (
        plus[..., None] * np.asarray(waves["p"])[:, None]
        + cross[..., None] * np.asarray(waves["c"])[:, None]
    ) * np.exp(-2j * np.pi * FREQUENCY[IN_BAND] * arrival[..., None])
    strain = fft.irfft(spectrum * RATE, N)
    loudness = rng.uniform(8, 20, n)
    scale = loudness / np.sqrt(np.sum(signal_to_noise(strain) ** 2, 1))
    drawn = {"masses": masses, "loudness": loudness, "distance": far / scale}
    return strain * scale[:, None, None], drawn


# %%
# Twelve numbers a piece
# ----------------------
# A piece is 8,192 numbers, and a merger may be anywhere in it. What is kept is how loud it gets:
# in each of twelve bands of frequency, a few oscillations wide, the power of one detector and that
# of the other, at most ten milliseconds apart, added; and of this the largest value over time, as a
# logarithm. It is a choice of what to look at (short, in both detectors), but no waveform is in it.
CENTRES = np.geomspace(28, 320, 12)  # Hz
QUALITY = 5  # of a band: its centre over its width
STEP = 4  # of 1/1,024 s


def power(white):
    """Power in each band, of mean one for noise: (n, 2, 12, N / STEP)."""
    spectrum = fft.rfft(white.astype(np.float32))
    bands = []
    for centre in CENTRES:
        window = np.exp(-((FREQUENCY - centre) ** 2) / (2 * (centre / QUALITY) ** 2)) * IN_BAND
        one_sided = np.zeros(white.shape, np.complex64)
        one_sided[..., : len(FREQUENCY)] = spectrum * window
        envelope = fft.ifft(one_sided)[..., ::STEP]
        bands.append(np.abs(envelope) ** 2 * (2 * IN_BAND.sum() / np.sum(window**2)))
    return np.stack(bands, 2)


def embedded(white):
    """The numbers of each piece, and a small picture of its loudest moment."""
    hanford, livingston = np.moveaxis(power(white), 1, 0)
    apart = round(0.010 * RATE / STEP)
    both = hanford + maximum_filter1d(livingston, 2 * apart + 1, axis=-1)
    loudest = both.max(1).argmax(1)
    around = (loudest[:, None] + np.arange(-96, 32)) % both.shape[-1]  # 0.4 s before, 0.1 s after
    shown = np.take_along_axis(both, around[:, None], 2)[:, ::-1, ::2]
    pictures = np.clip((shown - 4) / 26, 0, 1).repeat(4, axis=1)
    return np.log(both.max(-1)), pictures.astype(np.float32)


# %%
# Reference and data
# ------------------
# The reference is noise alone, as one gets it from real detectors by shifting one of them by more
# than the light takes. A few of the pieces of the data hold a merger; which, only this page knows.
rng = np.random.default_rng(0)
waves, drawn = mergers(rng, N_MERGERS)
is_merger = np.zeros(N_DATA, bool)
is_merger[rng.choice(N_DATA, N_MERGERS, replace=False)] = True
number = np.cumsum(is_merger) - 1  # of the merger, where there is one


def pieces(n, planted=None):
    """Whitened pieces in blocks, noise with mergers where they were planted."""
    for first in range(0, n, 250):
        strain = coloured(rng, min(250, n - first))
        if planted is not None:
            here = planted[first : first + 250]
            strain[here] += waves[number[first : first + 250][here]]
        yield whitened(strain).astype(np.float32)


reference = np.concatenate([embedded(block)[0] for block in pieces(N_REFERENCE)])
strain = np.concatenate(list(pieces(N_DATA, is_merger)))
blocks = [embedded(strain[first : first + 250]) for first in range(0, N_DATA, 250)]
data, pictures = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
columns = [f"power at {centre:.0f} Hz" for centre in CENTRES]
variance = float(strain[~is_merger].var())
print(f"{N_MERGERS} of {N_DATA} pieces hold a merger, at a distance of")
print(f"{drawn['distance'].min():.0f} to {drawn['distance'].max():.0f} megaparsecs")
print(f"whitened noise has variance {variance:.4f}")

# %%
# The test
# --------
result = sparker.test(
    dict(zip(columns, reference.T, strict=True)),
    dict(zip(columns, data.T, strict=True)),
    n_toys=N_TOYS,
)
print(result.summary())

# %%
# Which pieces
# ------------
# Among the highest rows, and in the list with a known share of mistakes. For comparison, the rows
# with the loudest single band, which is what one would look at first.
order = result.ranking
listed = np.asarray(result.rows(fdr=0.2)["row"])
loudest = np.argsort(-data.max(1))
top = {k: int(is_merger[order[:k]].sum()) for k in (10, N_MERGERS, 2 * N_MERGERS)}
for k, found in top.items():
    print(f"of the {k} highest rows {found} are mergers")
by_loudness = int(is_merger[loudest[:N_MERGERS]].sum())
print(f"of the {N_MERGERS} pieces with the loudest band {by_loudness} are mergers")
print(f"{len(listed)} rows are listed, {is_merger[listed].sum()} of them are mergers")
in_list = np.isin(np.flatnonzero(is_merger), listed)
for name, these in {"listed": in_list, "not listed": ~in_list}.items():
    if these.any():
        print(f"median signal-to-noise ratio of mergers {name}: ", end="")
        print(f"{np.median(drawn['loudness'][these]):.1f}")

# %%
# The highest row
# ---------------
# Its whitened strain in both detectors, around the loudest moment, and, since this page knows it,
# what was planted there.
highest = int(order[0])
figure, axes = plt.subplots(2, 2, figsize=(10, 5), layout="constrained", sharex=True)
bands = power(strain[highest][None])[0]
moment = bands.sum(0).max(0).argmax() * STEP / RATE
time = np.arange(N) / RATE - moment
planted = whitened(waves[number[highest]]) if is_merger[highest] else None
for which, name in enumerate(("Hanford", "Livingston")):
    axes[0, which].plot(time, strain[highest, which], color="0.6", lw=0.8, label="recorded")
    if planted is not None:
        axes[0, which].plot(time, planted[which], color="C3", lw=1.2, label="planted")
    axes[0, which].set(title=name, xlim=(-0.4, 0.1), ylabel="whitened strain")
    axes[1, which].pcolormesh(time[::STEP], CENTRES, bands[which], shading="nearest", vmin=0)
    axes[1, which].set(yscale="log", xlabel="seconds", ylabel="Hz")
    axes[1, which].set_yticks([30, 50, 100, 200, 300], ["30", "50", "100", "200", "300"])
    axes[1, which].minorticks_off()
axes[0, 0].legend(loc="upper left")
figure.suptitle(f"the highest row: piece {highest}")
figure.savefig(OUTPUT / "gravitational_waves.png")

# %%
# How sure one can be of a merger depends on its loudness.
rank = np.empty(N_DATA, int)
rank[order] = np.arange(1, N_DATA + 1)
figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.scatter(drawn["loudness"], rank[is_merger], color="C3", s=18)
ax.axhline(len(listed) + 0.5, color="0.5", lw=1, ls="--")
ax.annotate("as many rows are listed", (20, len(listed) + 1), ha="right", va="bottom")
ax.set(yscale="log", xlabel="signal-to-noise ratio of the merger", ylabel="rank of its piece")
figure.savefig(OUTPUT / "gravitational_waves_ranks.png")

# %%
# The report
# ----------
# Beside each row stands a picture of its loudest moment: time to the right, frequency upwards.
texts = np.full(N_DATA, "noise", object)
texts[is_merger] = [
    f"planted: a merger of {heavy:.0f} and {light:.0f} solar masses, signal-to-noise {ratio:.1f}"
    for (heavy, light), ratio in zip(drawn["masses"], drawn["loudness"], strict=True)
]
result.report(
    recipe.report,
    names=[f"piece {i}" for i in range(N_DATA)],
    texts=texts.tolist(),
    images=list(pictures),
    title="Is there anything but noise in two detectors?",
)
regions = result.regions()
recipe.record(
    n_reference=N_REFERENCE,
    n_data=N_DATA,
    n_mergers=N_MERGERS,
    signal_to_noise=[8, 20],
    n_toys=N_TOYS,
    seed=0,
    p_value=result.p_value,
    at_least=result.at_least,
    region=str(regions["rule"][0]) if len(regions["rule"]) else None,
    mergers_among_the_highest=top,
    mergers_among_the_loudest={N_MERGERS: by_loudness},
    listed_at_20_percent=[len(listed), int(is_merger[listed].sum())],
    variance_of_whitened_noise=round(variance, 4),
)

# %%
# `gravitational_waves_report.html <gravitational_waves_report.html>`_.
#
# Real detectors are harder. Their noise is not Gaussian: it has lines, and glitches that look like
# short signals in one detector, and its spectrum has to be measured. All of this would be in
# the reference, too, if that is recorded noise: then the same test asks for what noise does not do.
