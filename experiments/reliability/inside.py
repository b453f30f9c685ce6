"""A process that runs command lines: ``python -m experiments.reliability.inside``.

To start Python and JAX takes seconds, so that files damaged in a thousand ways are shown to one
process. It is asked by lines of JSON, the folder and the arguments, and answers with exit code,
stdout and stderr. Who asks may stop it at any time.
"""

import json
import os
import sys

from click.testing import CliRunner


def main() -> None:
    """Until nobody asks any more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    from sparker.cli.main import main as sparker

    for line in sys.stdin:
        folder, arguments = json.loads(line)
        os.chdir(folder)
        done = CliRunner().invoke(sparker, arguments)
        answers.write(json.dumps([done.exit_code, done.stdout, done.stderr]) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
