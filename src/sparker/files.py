"""Results and monitors from their files, whichever it is."""

import os
from typing import Any

from sparker.anytime import KIND as ANYTIME
from sparker.anytime import AnytimeMonitor, SavedAnytime
from sparker.findings.result import KIND as RESULT
from sparker.findings.result import RESTORE
from sparker.monitor import KIND as MONITOR
from sparker.monitor import Monitor
from sparker.monitor_file import SavedMonitor
from sparker.result import TestResult
from sparker.system import archive

SAVED: dict[str, Any] = {RESULT: TestResult, MONITOR: SavedMonitor, ANYTIME: SavedAnytime}
"""The types of what files hold, by what it is called."""
HOMES: dict[type, Any] = {SavedMonitor: Monitor, SavedAnytime: AnytimeMonitor}


def load(path: str | os.PathLike[str], embed: Any = None) -> TestResult | Monitor | AnytimeMonitor:
    """Return the result or monitor that ``save`` wrote; other contents do no harm.

    Args:
        path: the file.
        embed: the function that embedded texts or pictures, which no file can hold, where further
            rows are to be embedded.

    Raises:
        ValueError: if the file holds anything else, or is damaged.
    """
    with archive.reading(path, *SAVED):
        found = archive.unpacked(archive.content_of(path), SAVED, RESTORE)
        restored: TestResult | Monitor | AnytimeMonitor
        restored = HOMES.get(type(found), TestResult).restored(found, embed)
        return restored
