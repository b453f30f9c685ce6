"""Run a script with the code of the yardstick: the commit before the method was moved.

    python -m benchmarks.yardstick SCRIPT [ARGUMENT...]

``yardstick.txt`` has the subject line of that commit. Its ``src`` is unpacked into a temporary
folder and comes first on the path of the script, such as ``-c "import sparker; ..."``.
"""

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SUBJECT = (HERE / "yardstick.txt").read_text().strip()


def commit() -> str:
    """Return the newest commit with this subject line."""
    log = subprocess.run(
        ["git", "log", "--format=%H %s"], cwd=HERE, capture_output=True, text=True, check=True
    )
    for line in log.stdout.splitlines():
        found, _, subject = line.partition(" ")
        if subject == SUBJECT:
            return found
    raise SystemExit(f"no commit has the subject {SUBJECT!r}; fetch the whole history")


def main() -> int:
    """Unpack the code, and run the script with it."""
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    packed = subprocess.run(
        ["git", "archive", commit(), "src"], cwd=HERE.parent, capture_output=True, check=True
    ).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        path = os.pathsep.join([f"{folder}/src", os.environ.get("PYTHONPATH", "")])
        return subprocess.run(
            [sys.executable, *sys.argv[1:]], env=os.environ | {"PYTHONPATH": path}, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
