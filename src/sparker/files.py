"""Results and monitors from their files, whichever it is."""

import os
from pathlib import Path
from typing import Any

from sparker.anytime import KIND as ANYTIME
from sparker.anytime import AnytimeMonitor
from sparker.findings.saved import KIND as RESULT
from sparker.monitor import KIND as MONITOR
from sparker.monitor import Monitor
from sparker.result import TestResult
from sparker.system import archive

KINDS: dict[str, Any] = {RESULT: TestResult, MONITOR: Monitor, ANYTIME: AnytimeMonitor}


def load(path: str | os.PathLike[str], embed: Any = None) -> TestResult | Monitor | AnytimeMonitor:
    """What ``save`` wrote: a result or a monitor; whatever else is there does no harm.

    A function that embedded texts or pictures is not in the file: give it as ``embed`` again where
    further rows are to be embedded.
    """
    header, contents = archive.read(Path(path), *KINDS)
    found: TestResult | Monitor | AnytimeMonitor
    found = KINDS[header["kind"]].restored(path, header, contents)
    return found if embed is None else found.embedded_by(embed)
