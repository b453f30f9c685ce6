"""Studies made of units: each is measured once, in any order, by any number of processes.

A unit is a tuple, such as ("never", "normal", 3): what is measured, where, and the number of its
random sample. What was found is kept in the study's JSON file under the unit's name as soon as it
is there. The same command goes on from that file, and so does another machine that is given it.
"""

import argparse
import json
import multiprocessing
import re
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from experiments.workers import pool

from sparker.system.atomic import whole_file
from sparker.system.versions import versions

Unit = tuple[Any, ...]
Found = dict[str, Any]
BETWEEN = 5.0
"""Seconds between two writings of the file."""


def options(description: str, result: Path) -> argparse.ArgumentParser:
    """What every study can be told."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--processes", type=int, default=1, help="each on a core of its own")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--only", default="", help="a pattern that the names of units must have")
    parser.add_argument("--output", type=Path, default=result)
    return parser


def name(unit: Unit) -> str:
    """Its name in the file."""
    return "; ".join(str(part) for part in unit)


def run(
    options: argparse.Namespace,
    command: str,
    settings: Mapping[str, Any],
    units: Iterable[Unit],
    measured: Callable[..., Found],
) -> None:
    """Measure the units that are missing, until the time is over."""
    end = time.monotonic() + options.seconds
    found = read(options.output, settings) if options.output.exists() else {}
    missing = [
        unit for unit in units if name(unit) not in found and re.search(options.only, name(unit))
    ]
    head = {"command": command, "versions": versions(), "settings": settings}
    written = time.monotonic()
    with pool(options.processes) as workers:
        results = workers.imap_unordered(partial(_one, measured), missing)
        try:
            for _ in missing:
                key, one = results.next(timeout=max(0.0, end - time.monotonic()))
                found[key] = one
                print(key, one, flush=True)
                if time.monotonic() > written + BETWEEN:
                    write(options.output, head, found)
                    written = time.monotonic()
        except multiprocessing.TimeoutError:
            pass
        finally:
            write(options.output, head, found)


def _one(measured: Callable[..., Found], unit: Unit) -> tuple[str, Found]:
    return name(unit), measured(*unit)


def read(path: Path, settings: Mapping[str, Any]) -> dict[str, Found]:
    """What was measured with these settings."""
    record = json.loads(path.read_text())
    if record["settings"] != settings:
        raise SystemExit(f"{path} was measured with other settings; move it away")
    found: dict[str, Found] = record["units"]
    return found


def write(path: Path, head: Mapping[str, Any], found: Mapping[str, Found]) -> None:
    """Keep it, a line a unit, in the order of their names."""
    lines = (f"  {json.dumps(key)}: {json.dumps(found[key])}" for key in sorted(found))
    units = '"units": {\n' + ",\n".join(lines) + "\n }\n}\n"
    with whole_file(path) as file:
        file.write((json.dumps(head, indent=1)[:-2] + ",\n " + units).encode())
