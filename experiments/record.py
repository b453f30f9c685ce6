"""What the experiments share: their options, and the files they leave behind.

    python -m experiments.record        # the table of all results, as it stands in README.md

An experiment is a function that measures, ``quick`` or in full, and one that draws what was
measured. Measuring needs no matplotlib: a figure can be drawn later, from the result alone.
"""

import argparse
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import numpy as np

from sparker.calibration.pvalues import clopper_pearson
from sparker.system.versions import versions

HERE = Path(__file__).parent
COLUMNS = ("experiment", "paper", "ours", "68 % interval")
"""Of a result's ``row``; the table adds the command."""

Result = dict[str, Any]
Measure = Callable[[bool], Result]
MeasureData = Callable[[Path | None, bool], Result]
Draw = Callable[[Result], Any]


def run_on_data(
    file: str,
    description: str,
    measure: MeasureData,
    draw: Draw,
    arguments: Sequence[str] | None = None,
) -> Path:
    """As ``run``, an experiment that reads a folder, which only measuring needs."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--data", type=Path)
    options, others = parser.parse_known_args(arguments)
    return run(file, description, partial(measure, options.data), draw, others)


def run(
    file: str,
    description: str,
    measure: Measure,
    draw: Draw,
    arguments: Sequence[str] | None = None,
) -> Path:
    """Run an experiment as its options say and return its result's path."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="under a minute, into quick.json")
    parser.add_argument("--draw", action="store_true", help="only draw what was measured before")
    parser.add_argument("--output", type=Path, default=Path(file).parent, help="a folder")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / ("quick.json" if options.quick else "result.json")
    if not options.draw:
        began = time.perf_counter()
        found = measure(options.quick)
        module = f"experiments.{Path(file).parent.name}.run"
        result = {
            "command": f"python -m {module}" + " --quick" * options.quick,
            "hardware": jax.devices()[0].device_kind,
            "versions": versions(),
            "seconds": round(time.perf_counter() - began, 1),
        }
        path.write_text(as_text(result | found))
        print(table_row(result | found))
    if find_spec("matplotlib"):
        picture = path.with_name("quick.png" if options.quick else "figure.png")
        draw(json.loads(path.read_text())).savefig(picture, dpi=100)
    return path


def as_text(result: Result) -> str:
    """JSON with a line a field, and one for each innermost list."""
    text = json.dumps(result, indent=1)
    one_line = re.sub(r"\[[^][{}]*\]", lambda found: re.sub(r"\s*\n\s*", " ", found[0]), text)
    return one_line.replace("[ ", "[").replace(" ]", "]") + "\n"


def rounded(values: Any, digits: int = 4) -> Any:
    """Numbers with this many significant digits, as lists that JSON knows."""
    array = np.asarray(values, np.float64)
    short = np.array([float(f"{value:.{digits}g}") for value in array.ravel()])
    return short.reshape(array.shape).tolist()


def share(k: int, n: int) -> Result:
    """So many of so many, with the exact 68 % interval."""
    low, high = clopper_pearson(k, n, 0.68)
    return {"k": k, "n": n, "share": k / n, "low": round(low, 4), "high": round(high, 4)}


def table_row(result: Result) -> str:
    """One line of the table."""
    cells = [result["row"][column] for column in COLUMNS]
    return "| " + " | ".join([*cells, f"`{result['command']}`"]) + " |"


def table() -> list[str]:
    """The rows of all results in this folder that have one."""
    results = (json.loads(path.read_text()) for path in sorted(HERE.glob("*/result.json")))
    return [table_row(result) for result in results if "row" in result]


def filled(
    text: str, folder: Path, blocks: Mapping[str, tuple[str, Callable[[Any], list[str]]]]
) -> str:
    """A page whose tables, between marks of their names, are those of the results in a folder."""
    for name, (file, table) in blocks.items():
        made = "\n".join(table(json.loads((folder / file).read_text())))
        before, _, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        assert end, f"{name} does not stand on the page"
        text = f"{before}<!-- {name} -->\n{made}\n{end}{after}"
    return text


if __name__ == "__main__":
    titles = (*COLUMNS, "command")
    print("\n".join(["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|", *table()]))
