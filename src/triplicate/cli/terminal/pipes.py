"""Standard output as a pipe whose reader may close it early."""

from __future__ import annotations

import sys


class OutputClosed(Exception):
    """The reader closed standard output. This is not an error: the command ends with exit code 0."""


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
