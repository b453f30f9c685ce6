"""Ctrl-C and SIGTERM end a command within seconds, whatever it is doing."""

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

from sparker.cli.terminal import note

GRACE = 3.0
"""Seconds in which a command ends by itself. It may be in the middle of a call to the device, and
code of others may have swallowed the exception that was to end it."""


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does."""


ENDINGS = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: Terminated}
WORDS = {signal.SIGINT: "Interrupted.", signal.SIGTERM: "Terminated."}


def end(stop: KeyboardInterrupt) -> NoReturn:
    """Say that a signal has ended the command, and what is known of how to go on."""
    number = signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT
    _said.set()
    note(" ".join([WORDS[number], *getattr(stop, "__notes__", [])]))
    sys.exit(exit_code(number))


def exit_code(number: int) -> int:
    """What shells expect of a command that a signal has ended: 130 and 143."""
    return 128 + number


_said = threading.Event()


class _Last:
    """The last thing a process does: JAX's threads may crash a Python that takes itself apart."""

    code: int | None = None

    def __call__(self) -> None:
        if self.code is not None:
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError):
                    stream.flush()
            os._exit(self.code)


@contextmanager
def quick_endings() -> Iterator[None]:
    """While a program runs: hear the signals, even in the middle of a call to the device."""
    if threading.current_thread() is not threading.main_thread():  # which alone hears of them
        yield
        return
    heard = [number for number in ENDINGS if signal.getsignal(number) != signal.SIG_IGN]
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)  # written to at once, not when Python gets to its handlers
    for number in heard:
        signal.signal(number, _raise)
    threading.Thread(target=_insist, args=[reading], daemon=True).start()
    last = _Last()
    atexit.register(last)  # before all others, and so called after them
    try:
        yield
    except SystemExit as end:
        if isinstance(end.code, int) and end.code in map(exit_code, ENDINGS):
            last.code = end.code
        raise


def _raise(number: int, frame: FrameType | None) -> None:
    raise ENDINGS[signal.Signals(number)]


def _insist(reading: int) -> None:
    """End the process a while after a signal, if it does not do so by itself."""
    number = os.read(reading, 1)[0]
    time.sleep(GRACE)
    if not _said.is_set():
        with suppress(OSError, ValueError):
            note(
                f"{WORDS[signal.Signals(number)]} What was finished before is kept where it was to "
                "be kept (--store, --journal); the same command goes on there."
            )
    os._exit(exit_code(number))
