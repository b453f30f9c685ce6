"""Files read apart: by a process of its own, which a damaged file may crash, fill or keep busy.

Readers written in C trust the files they read: a few wrong bytes, and they crash, run for ever, or
ask for all memory there is. So the file is opened by a second process, which has limits and sends
the cells through a pipe; whatever becomes of it, this one goes on and has a plain reason. The
second process imports NumPy and the reader, and no JAX. It is started by the first file that needs
it and waits for further ones.

A message is a header in JSON, followed by the bytes of an array. Nothing is pickled: who took over
the second process with a file has still not reached the first.
"""

import atexit
import itertools
import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from sparker.system.machine import free_on_machine
from sparker.tables import source as blocks
from sparker.tables.cells import Cells, as_objects
from sparker.tables.errors import FileError
from sparker.tables.source import Piece, Source

MAX_SECONDS = 60
"""Of work, not of waiting for a disk, that opening a file or reading one block may take."""

MAX_WAIT = 600
"""Seconds after which one that does not work, either, is stopped: a reader may wait for itself."""

PIPE = 2**20
"""Bytes that wait in the pipe; with fewer, the two processes would wait for each other more."""

LENGTHS = struct.Struct("<QQ")  # of the header and of what follows it

START = "import sys; sys.path[:] = sys.argv[1:]; from sparker.tables import apart; apart.serve()"

ABOUT = ("names", "named", "n_rows", "beside", "lists", "single")
"""What a source knows beside its cells."""


def _send(to: IO[bytes], header: dict[str, Any], content: Sequence[Any] = ()) -> None:
    text = json.dumps(header).encode()
    to.write(LENGTHS.pack(len(text), sum(map(len, content))))
    to.write(text)
    to.writelines(content)


def _receive(of: IO[bytes]) -> tuple[dict[str, Any], bytearray]:
    lengths = of.read(LENGTHS.size)
    if len(lengths) < LENGTHS.size:
        raise EOFError
    n_header, n_content = LENGTHS.unpack(lengths)
    header = json.loads(of.read(n_header))
    content = bytearray(n_content)
    if of.readinto(content) < n_content:  # type: ignore[attr-defined]
        raise EOFError
    return header, content


# --- Here -----------------------------------------------------------------------------------------


class _Reader:
    """The second process, as this one sees it."""

    def __init__(self) -> None:
        # Of threads that would multiply matrices, each takes memory from the start.
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=PIPE,
            pipesize=PIPE,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        )
        self._is_busy = False  # with the answer to a request
        self._has_file = False

    def open(self, request: dict[str, Any]) -> dict[str, Any]:
        """What it says of a file."""
        self._ask(request)
        about = self._answer()[0]["source"]
        self._has_file = True
        return {name: tuple(v) if isinstance(v, list) else v for name, v in about.items()}

    def _ask(self, request: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._is_busy = True
        with suppress(BrokenPipeError):  # it is gone, as its answer will tell
            _send(self._process.stdin, request)
            self._process.stdin.flush()

    def _answer(self) -> tuple[dict[str, Any], bytearray]:
        """What it sends, or the error that it met, or that was its end."""
        assert self._process.stdout is not None
        try:
            header, content = _receive(self._process.stdout)
        except EOFError:
            raise _reason(self._process.wait()) from None
        self._is_busy = "cells" in header
        if "error" in header:
            self._has_file = False
            raise _error(**header)
        return header, content

    def pieces(self, wanted: tuple[str, ...], only_numbers: bool) -> Iterator[Piece]:
        """Of these columns, as they come."""
        self._ask({"wanted": wanted, "only_numbers": only_numbers})
        while True:
            header, content = self._answer()
            if "cells" not in header:
                return
            columns = header["columns"]
            for column, cells in zip(columns, _cells(header, content), strict=True):
                yield wanted[column], header["start"], cells

    def release(self) -> None:
        """Let it wait for the next file, if it can."""
        with suppress(Exception):  # of a file that nobody needs any more
            if self._has_file and not self._is_busy:
                self._ask({})
                self._answer()
                self._has_file = False
        if self._is_busy:
            self.end()
        else:
            _idle.append(self)

    def end(self) -> None:
        """Stop it, whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # what was not sent is sent to nobody
                pipe.close()  # type: ignore[union-attr]


_idle: list[_Reader] = []


@atexit.register
def end_all() -> None:
    """Stop the processes that wait."""
    while _idle:
        _idle.pop().end()


if hasattr(os, "register_at_fork"):  # who is forked must not ask the reader of another
    os.register_at_fork(after_in_child=_idle.clear)


@contextmanager
def open_apart(suffix: str, path: Path, key: str | None) -> Iterator[Source]:
    """The table in a file of this suffix, opened and read by the second process."""
    reader = _idle.pop() if _idle else _Reader()
    try:
        about = reader.open(
            {
                "suffix": suffix,
                "path": os.path.abspath(path),
                "key": key,
                "free": int(free_on_machine() / 2),  # the other half is for what it sends
                "limits": (MAX_SECONDS, MAX_WAIT),
                "block": (blocks.BLOCK_ROWS, blocks.BLOCK_VALUES),
            }
        )
        yield Source(pieces=reader.pieces, **about)
    finally:
        reader.release()


def _reason(status: int) -> Exception:
    """Why it is gone."""
    for name, seconds in (("SIGXCPU", MAX_SECONDS), ("SIGALRM", MAX_WAIT)):
        if status == -getattr(signal, name, 0):
            return FileError(
                f"keeps its reader busy for more than {seconds} s without a row; it is damaged, "
                "or made to do so: write it anew"
            )
    if status == -getattr(signal, "SIGKILL", 0):  # by the system, where memory ends
        return MemoryError()
    how = signal.Signals(-status).name if status < 0 else f"exit code {status}"
    return FileError(f"makes its reader crash ({how}); it is damaged: write it anew")


def _error(error: str, text: str, errno: int | None = None) -> Exception:
    kinds = {"FileError": FileError, "ImportError": ImportError, "MemoryError": MemoryError}
    if error in kinds:
        return kinds[error](text)
    return OSError(errno, text) if errno is not None else ValueError(text)


def _cells(header: dict[str, Any], content: bytearray) -> Sequence[Cells]:
    """The cells of each column of a message."""
    if header["cells"] is None:
        return [as_objects(json.loads(content))]
    columns = np.frombuffer(content, np.dtype(header["cells"]))
    return list(columns.reshape(len(header["columns"]), -1))


# --- There ----------------------------------------------------------------------------------------


def serve() -> None:
    """Open files and send their cells, until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is meant for who asks
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", PIPE)
    os.dup2(2, 1)  # what a library prints is no answer
    with suppress(EOFError, BrokenPipeError):
        while True:
            request, _ = _receive(requests)
            try:
                _serve_file(requests, answers, **request)
                _send(answers, {})
            except (EOFError, BrokenPipeError):
                raise
            except Exception as error:  # readers of damaged files raise whatever they stumble over
                _at_ease()
                _send(answers, _described(error))
            answers.flush()


def _serve_file(
    requests: IO[bytes],
    answers: IO[bytes],
    suffix: str,
    path: str,
    key: str | None,
    free: int,
    limits: tuple[int, int],
    block: tuple[int, int],
) -> None:
    from sparker.tables.files import FORMATS

    blocks.BLOCK_ROWS, blocks.BLOCK_VALUES = block
    _limit(*limits, free)
    with FORMATS[suffix].opener(Path(path), key) as source:
        about = {name: getattr(source, name) for name in ABOUT}
        about |= {name: sorted(about[name]) for name in ("lists", "single")}
        _at_ease()
        _send(answers, {"source": about})
        while True:
            answers.flush()
            request, _ = _receive(requests)
            if not request:
                return
            _limit(*limits)
            wanted = tuple(request["wanted"])
            column = {name: i for i, name in enumerate(wanted)}
            pieces = source.pieces(wanted, request["only_numbers"])
            packed = ((column[name], start, *_packed(cells)) for name, start, cells in pieces)
            # The columns of a block in one message: of a wide table it has few rows.
            for (start, kind, _), alike in itertools.groupby(packed, _which):
                _limit(*limits)
                columns, _, _, contents = zip(*alike, strict=True)
                header = {"columns": columns, "start": start, "cells": kind}
                _at_ease()
                _send(answers, header, contents)
                _limit(*limits)
            _at_ease()
            _send(answers, {})


def _which(piece: tuple[int, int, str | None, Any]) -> tuple[int, str | None, int]:
    """What columns of one message share: of texts, no others have it."""
    column, start, kind, content = piece
    return start, kind, column if kind is None else len(content)


def _limit(seconds: int, wait: int, free: int | None = None) -> None:
    """Let this process work and wait for so long, and take no more than this memory."""
    try:
        import resource
    except ImportError:  # Windows has no such limits, but crashes are still its own
        return
    signal.alarm(wait)
    used = resource.getrusage(resource.RUSAGE_SELF)
    allowed = int(used.ru_utime + used.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (allowed, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    if free is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        resource.setrlimit(resource.RLIMIT_DATA, (_in_use() + free, most))


def _at_ease() -> None:
    """While it waits for who asks, it may wait for as long as that takes."""
    if hasattr(signal, "alarm"):
        signal.alarm(0)


def _in_use() -> int:
    import psutil

    return int(getattr(psutil.Process().memory_info(), "data", 0))


def _packed(cells: Cells) -> tuple[str | None, Any]:
    """The kind of an array and its bytes; other cells as JSON, what it does not know as text."""
    if isinstance(cells, np.ndarray) and not cells.dtype.hasobject:
        return cells.dtype.str, np.ascontiguousarray(cells).view(np.uint8).data
    values = [v.decode(errors="replace") if isinstance(v, bytes) else v for v in cells]
    return None, json.dumps(values, default=_plain).encode()


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


def _described(error: Exception) -> dict[str, Any]:
    """An error as ``_error`` makes it anew."""
    kind = next(
        (kind for kind in (FileError, ImportError, MemoryError) if isinstance(error, kind)), None
    )
    if kind is not None:
        return {"error": kind.__name__, "text": str(error)}
    if isinstance(error, OSError) and error.strerror:
        return {"error": "OSError", "text": error.strerror, "errno": error.errno}
    return {"error": "", "text": str(error).strip() or type(error).__name__}
