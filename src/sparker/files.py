"""Results and monitors from their files, whichever it is."""

import os
from pathlib import Path
from typing import Any

from sparker.findings.saved import KIND as RESULT
from sparker.monitor import KIND as MONITOR
from sparker.monitor import Monitor
from sparker.result import TestResult
from sparker.system import archive


def load(path: str | os.PathLike[str], embed: Any = None) -> TestResult | Monitor:
    """What ``save`` wrote: a test's result, or a monitor; whatever else is there does no harm.

    A function that embedded texts or pictures is not in the file: give it as ``embed`` again where
    further rows are to be embedded.
    """
    found = archive.read(Path(path), RESULT, MONITOR)
    is_result = found[0]["kind"] == RESULT
    loaded = TestResult.restored(path, *found) if is_result else Monitor.restored(path, *found)
    return loaded if embed is None else loaded.embedded_by(embed)
