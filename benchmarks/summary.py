"""All that was measured, beside what was aimed at, as one table in Markdown.

    python benchmarks/summary.py [FOLDER OF RESULTS]

Reads what the other benchmarks have written; what is missing was not run.
"""

import json
import sys
from pathlib import Path

AIMS = {
    "gravitational waves": 0.5,
    "particle jets": 1.8,
    "Divine Comedy": 0.8,
    "ImageNet OOD": 0.7,
    "CIFAR-10 vs 5m": 7.0,
    "butterfly hybrids": 0.1,
}
"""Microseconds per toy and step on one H200."""


def rows_of(folder, name):
    path = folder / f"{name}.json"
    return json.loads(path.read_text())["rows"] if path.exists() else []


def per_step(folder):
    """The compute table, in the fastest precision, 256 toys at a time."""
    measured = [
        row
        for row in rows_of(folder, "compute_table-gpu")
        if row["toys"] == 256 and row["products"] == "DEFAULT"
    ]
    for row in measured:
        paper, ours = row["paper_us_per_step"], row["us_per_toy_step"]
        what = f"{row['application']}, {row['rows']:,} x {row['features']:,}: a step of a toy"
        aim = f"{AIMS[row['application']]} us"
        yield what, "H200", f"{ours:.2f} us", aim, f"{paper / ours:,.0f} x the paper"


def whole(folder, platform, device, aims):
    for row in rows_of(folder, f"whole_test-{platform}"):
        n_rows = row["reference"] + row["data"]
        what = f"{n_rows:,} x {row['features']:,}: a p-value, {row['toys']} toys"
        aim, paper = aims.get(row["shape"], ("", None))
        ratio = f"{paper / row['seconds']:,.0f} x the paper, for one fit" if paper else ""
        yield what, device, f"{row['seconds']:.1f} s", aim, ratio


def against_torch(folder):
    for row in rows_of(folder, "against_torch-cpu"):
        ours = row["ms_per_toy_step"]["sparker"]
        aim = "15 x" if row["shape"] == "22,000 x 1" else ""
        what = f"{row['shape']}: a step of a toy"
        yield what, "2 cores", f"{ours:.3f} ms", aim, f"{row['ratio']:.1f} x plain PyTorch"


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "results"
    print("| what | where | measured | aim | ratio |\n|---|---|---|---|---|")
    cifar = {"CIFAR-10 vs 5m": ("10 s", 33576.0)}
    for line in (
        *per_step(folder),
        *whole(folder, "gpu", "H200", cifar),
        *against_torch(folder),
        *whole(folder, "cpu", "2 cores", {"1-D": ("90 s", None)}),
    ):
        print("|", " | ".join(line), "|")


if __name__ == "__main__":
    main()
