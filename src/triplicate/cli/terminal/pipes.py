"""The standard streams: a pipe whose reader closes it early, a full disk, streams that the parent has closed."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

STANDARD_OUTPUT = "standard output"


class OutputClosed(Exception):
    """The reader closed standard output. This is not an error: the command ends with exit code 0."""


class _NamedOutput(io.FileIO):
    """Standard output, whose errors name it."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OSError(error.errno, error.strerror, STANDARD_OUTPUT) from None


def prepare_standard_streams() -> None:
    """Let every standard stream have a file, and errors of standard output its name.

    A program that is started with a closed stream would give its number to the next file or socket that it opens: output would go there,
    and uvloop aborts the process when it closes such a socket. A closed input is read as empty. Output to a closed stream is an error that
    a command reports, and remarks on a closed standard error are dropped.
    """
    for number, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is the one that is missing. Writing to a file that is open for reading fails.
            os.open(os.devnull, mode)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    if sys.stdout is None or sys.stdout is sys.__stdout__:
        encoding, errors, at_once = (
            (sys.stdout.encoding, sys.stdout.errors, sys.stdout.line_buffering) if sys.stdout else ("utf-8", "strict", False)
        )
        named = io.BufferedWriter(_NamedOutput(1, "w", closefd=False))
        sys.stdout = io.TextIOWrapper(named, encoding, errors, line_buffering=at_once)


def discard_output() -> None:
    """Send what is still buffered for standard output, and would fail again at the end of the interpreter, to nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def write_output(data: bytes) -> None:
    """Write and flush, so that a reader of the pipe receives the data at once.

    Raises:
        OutputClosed: the reader closed the pipe. OSError: the write failed for another reason.
    """
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise OutputClosed from None
