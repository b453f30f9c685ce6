"""The command line. Results go to stdout, everything said along the way to stderr."""

from pathlib import Path

import click


class BadInput(click.ClickException):
    """Something the user can put right: one plain line, exit code 2."""

    exit_code = 2


@click.group()
@click.version_option(package_name="sparker")
def main() -> None:
    """Does this sample come from the same distribution as that reference, and if not, where?"""


@main.command()
@click.option(
    "--seed",
    default=7,
    show_default=True,
    type=click.IntRange(0, 2**32 - 1),
    help="Draws the toy and starts the fit.",
)
@click.option(
    "--output",
    default="sparker-demo.png",
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the picture goes.",
)
@click.option(
    "--calibrations",
    default=100,
    show_default=True,
    type=click.IntRange(1),
    help="Anomaly-free experiments; p-values go down to one over this + 1.",
)
def demo(seed: int, output: Path, calibrations: int) -> None:
    """Hide a handful of events in 2,000, find them, and say how sure one can be.

    The paper's one-dimensional toy: an exponential with a bump of about five events at x = 9. Takes
    about a minute on two cores.

    Example: sparker demo --seed 1
    """
    from sparker.demo import run  # here, so that only the demo waits for matplotlib

    if not output.parent.is_dir():
        raise BadInput(f"there is no folder {output.parent}; make it, or choose another --output")
    try:
        run(seed, calibrations, output)
    except OSError as error:
        raise BadInput(f"the picture could not be written to {output}: {error.strerror}") from error
