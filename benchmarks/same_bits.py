"""Does a toy come out the same to the last bit, whatever its place, company and process?

Prints a digest of a few toys fitted at different places of chunks of one size. All lines of a run
must agree, and so must two runs on the same machine.
"""

import hashlib

import numpy as np
from record import random_pool

from sparker import fit_many, schedule, width_range

CHUNK = 64
SHAPES = {"direct": (24_000, 4_000, 4), "product": (11_000, 1_000, 384)}


def digest(result, toy):
    arrays = (result.t, result.models.mu, result.models.a)
    return hashlib.sha256(b"".join(a[toy].tobytes() for a in arrays)).hexdigest()[:12]


def main():
    for name, (n, n_data, d) in SHAPES.items():
        samples = random_pool(np.random.default_rng(0), n, n_data, d, 100)
        widths = schedule(*width_range(samples.points), steps=500)
        whole = fit_many(0, samples, widths, chunk=CHUNK)
        for toys in ([70], [99, 3, 70], list(range(99, -1, -1))):
            part = fit_many(0, samples.toys(toys), widths, toys=toys, chunk=CHUNK)
            here = digest(part, toys.index(70))
            print(name, len(toys), "toys:", here, "as in the whole:", here == digest(whole, 70))


if __name__ == "__main__":
    main()
