"""Standard output as a pipe whose reader may leave before the end."""

from __future__ import annotations

import sys


class OutputClosed(Exception):
    """Nobody reads standard output any more: not an error, the command ends there with exit code 0."""


def write_output(data: bytes) -> None:
    """Write and flush, so that a reader at the other end of a pipe sees it now.

    Raises:
        OutputClosed: the reader is gone. OSError: writing failed otherwise.
    """
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise OutputClosed from None
