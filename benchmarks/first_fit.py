"""What a user waits for at first: import, and the compilation of a first fit.

Each shape runs in a process of its own. The second fit has another seed and other data, so the
difference to the first is what compiling cost.
"""

import json
import subprocess
import sys

from common import save

SHAPES = {"22,000 x 1": (22_000, 1), "24,000 x 4": (24_000, 4), "11,000 x 1000": (11_000, 1000)}
STEPS = 1000
PROBE = """
import json, sys, time
start = time.perf_counter()
import numpy as np
import sparker.engine
imported = time.perf_counter()
n, d, steps = map(int, sys.argv[1:])
def fit(seed):
    points = np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)
    sample = sparker.engine.two_sample(points[n // 10 :], points[: n // 10])
    plan = sparker.engine.schedule(*sparker.engine.width_range(sample.points), steps=steps)
    begin = time.perf_counter()
    sparker.engine.fit(seed, sample, plan)
    return time.perf_counter() - begin
print(json.dumps({"import": imported - start, "first": fit(0), "second": fit(1)}))
"""


def main():
    rows = []
    for shape, (n, d) in SHAPES.items():
        steps = STEPS if d < 100 else STEPS // 10
        command = [sys.executable, "-c", PROBE, *map(str, (n, d, steps))]
        seconds = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        row = {
            "shape": shape,
            "steps": steps,
            "import_seconds": round(seconds["import"], 2),
            "compile_seconds": round(seconds["first"] - seconds["second"], 2),
            "fit_seconds": round(seconds["second"], 2),
        }
        print(row)
        rows.append(row)
    save("first_fit", rows=rows)


if __name__ == "__main__":
    main()
