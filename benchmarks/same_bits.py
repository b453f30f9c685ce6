"""Does a toy come out the same to the last bit, whatever its place, company and process?

A toy is fitted alone, among three and among a hundred in reverse order, in chunks of one size, and
all of this in several processes. One digest of its bits must come out, or the script fails.
"""

import hashlib
import subprocess
import sys

import numpy as np
from common import random_pool, save

from sparker.engine import fit_many, schedule, width_range

CHUNK = 64
PROCESSES = 3
SHAPES = {"direct": (24_000, 4_000, 4), "product": (11_000, 1_000, 384)}


def digest(result, toy):
    arrays = (result.t, result.models.mu, result.models.a)
    return hashlib.sha256(b"".join(a[toy].tobytes() for a in arrays)).hexdigest()[:12]


def digests(shape):
    """The digests of toy 70 in different company."""
    n, n_data, d = SHAPES[shape]
    samples = random_pool(np.random.default_rng(0), n, n_data, d, 100)
    widths = schedule(*width_range(samples.points), steps=500)
    found = set()
    for toys in ([70], [99, 3, 70], list(range(99, -1, -1))):
        part = fit_many(0, samples.toys(toys), widths, toys=toys, chunk=CHUNK)
        found.add(digest(part, toys.index(70)))
    return found


def main():
    result = {}
    for shape in SHAPES:
        found = set()
        for _ in range(PROCESSES):
            command = [sys.executable, __file__, "--digests", shape]
            output = subprocess.run(command, capture_output=True, check=True, text=True).stdout
            found |= set(output.split())
        print(shape, *found)
        assert len(found) == 1, f"{shape}: a toy came out in {len(found)} ways"
        result[shape] = found.pop()
    save("same_bits", processes=PROCESSES, chunk=CHUNK, digest_of_toy_70=result)


if __name__ == "__main__":
    if "--digests" in sys.argv:
        print(*digests(sys.argv[-1]))
    else:
        main()
