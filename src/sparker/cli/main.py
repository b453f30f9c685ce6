"""The command line. Results go to stdout, everything said along the way to stderr.

Exit codes: 0 fine, 1 an anomaly at the alpha asked for, 2 bad input or usage, or something that
could not be written, 3 an error of ours, 130 interrupted, 143 terminated; of ``sparker watch`` also
4 and 5, see there.
"""

import sys
import traceback
from contextlib import suppress
from io import TextIOWrapper
from typing import Any

import click

from sparker.cli import calibrate, closest, demo, look, share, test, watch
from sparker.cli.endings import end, quick_endings
from sparker.cli.errors import explained
from sparker.cli.options import refuse_repeats
from sparker.cli.terminal import (
    BadInput,
    discard_output,
    note,
    open_streams,
    printable_errors,
    reader_may_leave,
    warnings_as_notes,
)

INTERNAL_ERROR = 3


class _Commands(click.Group):
    """Turns what can go wrong into a plain line and an exit code."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As a program, which owns its process."""
        open_streams()
        with quick_endings():
            try:
                return super().__call__(*args, **kwargs)
            except OSError as error:  # of stdout, which was to show help, or of stderr
                with suppress(OSError):
                    note(f"Error: stdout: {error.strerror or error}")
                sys.exit(BadInput.exit_code)
            finally:
                with suppress(OSError), reader_may_leave():
                    pass  # or Python would end with an exit code of its own

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with printable_errors():
            return super().make_context(*args, **kwargs)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            refuse_repeats(command, rest, ctx)
        return name, command, rest

    def invoke(self, ctx: click.Context) -> Any:
        with printable_errors(), warnings_as_notes():
            return self._invoke(ctx)

    def _invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except KeyboardInterrupt as stop:
            end(stop)
        except BrokenPipeError:  # whoever read the output has seen enough
            discard_output()
            sys.exit(0)
        except Exception as error:
            if ctx.params.get("debug"):
                note(traceback.format_exc())
            said = explained(error)
            if said is not None:
                raise BadInput(said) from error
            note(
                f"Internal error: {type(error).__name__}: {error}\nThis should not happen. With "
                "`sparker --debug ...` it says where it did."
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
    closest.closest,
    share.merge,
    calibrate.calibrate,
    watch.watch,
    look.power,
    look.report,
    look.info,
):
    main.add_command(command)
