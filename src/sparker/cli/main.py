"""The command line. Results go to stdout, everything said along the way to stderr.

Exit codes: 0 fine, 1 an anomaly at the alpha asked for, 2 bad input or usage, 3 an error of ours,
130 interrupted; of ``sparker watch`` also 4 and 5, see there.
"""

import sys
import traceback
from io import TextIOWrapper
from typing import Any

import click

from sparker.cli import calibrate, demo, look, share, test, watch
from sparker.cli.errors import EXPECTED, plain
from sparker.cli.options import BadInput, discard_output

INTERNAL_ERROR = 3
INTERRUPTED = 130


class _Commands(click.Group):
    """Turns what can go wrong into a plain line and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except KeyboardInterrupt as stop:
            said = " ".join(getattr(stop, "__notes__", []))
            click.echo(f"Interrupted. {said}".rstrip(), err=True)
            sys.exit(INTERRUPTED)
        except BrokenPipeError:  # whoever read the output has seen enough
            discard_output()
            sys.exit(0)
        except Exception as error:
            if ctx.params.get("debug"):
                traceback.print_exc()
            if isinstance(error, EXPECTED):
                raise BadInput(plain(error)) from error
            click.echo(
                f"Internal error: {type(error).__name__}: {error}\nThis should not happen. With "
                "`sparker --debug ...` it says where it did.",
                err=True,
            )
            sys.exit(INTERNAL_ERROR)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="sparker")
@click.option("--debug", is_flag=True, help="Show where an error came from.")
def main(debug: bool) -> None:
    """Does this sample come from the same distribution as that reference, and if not, where?"""
    if isinstance(sys.stdout, TextIOWrapper):  # a character it does not have must cost no answer
        sys.stdout.reconfigure(errors="replace")


for command in (
    demo.demo,
    test.test,
    share.merge,
    calibrate.calibrate,
    watch.watch,
    look.power,
    look.report,
    look.info,
):
    main.add_command(command)
