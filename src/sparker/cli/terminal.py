"""What commands say: printable, on streams that may be closed, to readers that may leave."""

import errno
import json
import logging
import os
import sys
import unicodedata
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Kinds of characters that a terminal obeys, or that change how the others are read."""
HARMLESS = "\n\u200c\u200d"
"""Those of them that texts need: the ends of our lines, and how some scripts join letters."""


KEEPING = "persistent compilation cache entry"
"""What JAX's warnings speak of where a compiled program cannot be written or read."""


MAX_SAID = 10_000
"""Characters of an error: names of files and columns have no limit of their own."""


class BadInput(click.ClickException):
    """Something the user can put right: one plain line, exit code 2."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        """Print it, if anything can be printed."""
        with stderr_may_be_full():
            super().show(file)


def printable(text: str) -> str:
    r"""Words from files and arguments, with what a terminal would obey spelled out.

    >>> print(printable("a column \x1b[31mred"))
    a column \x1b[31mred
    """
    if text.isprintable():
        return text
    return "".join(
        c.encode("unicode_escape").decode()
        if unicodedata.category(c) in OBEYED and c not in HARMLESS
        else c
        for c in text
    )


@contextmanager
def printable_errors() -> Iterator[None]:
    """Errors name files and columns, too."""
    try:
        yield
    except click.ClickException as error:
        vars(error)["message"] = shortened(printable(error.message))
        raise


def shortened(text: str) -> str:
    """Return the beginning of a very long text."""
    n_more = len(text) - MAX_SAID
    return f"{text[:MAX_SAID]} ... and {n_more:,} characters more" if n_more > 0 else text


class Out(Console):
    """Stdout, for people: text of any length in one line, tables as wide as the terminal."""

    def __init__(self) -> None:
        super().__init__(highlight=False)

    def say(self, text: str, style: str | None = None) -> None:
        """A line, exactly as it is."""
        self.print(Text(printable(text)), style=style, soft_wrap=True)

    def table(self, title: str, columns: Mapping[str, Sequence[str | Text]]) -> None:
        """A table of columns by name: strings are numbers and never cut, texts give way."""
        self.say(title)  # in one line, however narrow the table is
        table = Table(padding=(0, int(self.width >= 60)))
        for name, cells in columns.items():
            widest = max((len(cell) for cell in cells if isinstance(cell, str)), default=None)
            table.add_column(name, justify="left" if widest is None else "right", min_width=widest)
        for row in zip(*columns.values(), strict=True):
            table.add_row(*row)
        self.print(table)

    def on_broken_pipe(self) -> None:
        """Leave it to ``reader_may_leave``; Rich would end here, with the code of an anomaly."""
        raise


def cell(text: str, *, cut: bool = False) -> Text:
    """The user's words in a table, without control codes; wrapped or cut where room is short."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return Text(" ".join(plain.split()), no_wrap=cut, overflow="ellipsis" if cut else "fold")


def brief(value: float | None, digits: int = 6) -> str:
    """A number for a table; nothing where it is not known."""
    return "" if value is None or value != value else f"{value:.{digits}g}"


def answer(text: str) -> None:
    """Say what was asked for, on stdout."""
    with reader_may_leave():
        click.echo(printable(text))


def answer_json(value: Any, *, indent: int | None = None) -> None:
    """Say it as JSON, in which nothing has to be spelled out."""
    with reader_may_leave():
        click.echo(json.dumps(value, indent=indent, allow_nan=False))


def note(text: str) -> None:
    """Say something along the way, on stderr."""
    with stderr_may_be_full():
        Console(stderr=True, soft_wrap=True, highlight=False).print(printable(text), markup=False)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """What looks suspicious, said at once, as a line of its own; and what libraries warn of.

    Not of a full disk or a folder that cannot be written to, again and again: where programs cannot
    be kept, they are compiled, and Matplotlib finds another place.
    """
    from sparker.system.cache_folder import CacheWarning
    from sparker.tables.errors import DataWarning

    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("always", DataWarning)
        others, is_said = warnings.showwarning, False

        def show(message: Any, category: Any, *where: Any, **how: Any) -> None:
            nonlocal is_said
            if issubclass(category, DataWarning | CacheWarning):
                note(f"Warning: {message}.")
            elif KEEPING not in str(message):
                others(message, category, *where, **how)
            elif not is_said:
                is_said = True
                note(
                    "Compiled programs cannot be kept for the next time "
                    f"({str(message).rpartition('] ')[2]}); SPARKER_CACHE names another folder."
                )

        warnings.showwarning = show
        yield


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Whoever reads the output may have seen enough, like ``head``; everything else goes on."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        discard_output()
        if error.errno == errno.EBADF:
            raise OSError(error.errno, "stdout is closed") from error
        if not isinstance(error, BrokenPipeError):
            raise


@contextmanager
def stderr_may_be_full() -> Iterator[None]:
    """Keep the exit code of a command where nothing can be written to stderr."""
    try:
        yield
        sys.stderr.flush()
    except OSError:
        discard_output(sys.stderr)


def discard_output(stream: TextIO | None = None) -> None:
    """Write what is still to come nowhere: Python complains at its end if it cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), (stream or sys.stdout).fileno())


def open_streams() -> None:
    """Take the numbers of streams that were closed, but let no answer go nowhere.

    Otherwise the next file that is opened gets the number of such a stream, and whatever a library
    says there goes into it. What is written to a stdout that was closed is an error.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
        if getattr(sys, name) is None:
            mode = "w" if number else "r"
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115
