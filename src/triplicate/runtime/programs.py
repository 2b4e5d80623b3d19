"""Running another program for a bounded time."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence

OUTPUT_BYTES_MAXIMUM = 1 << 20


def run_program(path: str, arguments: Sequence[str], limit_s: float) -> str:
    """Run a program without input and return its standard output. Blocks; call it on a `Worker`.

    A program that takes too long is killed with the processes that it started.

    Raises:
        OSError: it cannot be started, it ends with an error, it takes longer than `limit_s` seconds, or it prints more than
            `OUTPUT_BYTES_MAXIMUM` bytes.
    """
    # A file instead of a pipe: a process that the program left behind could keep a pipe open.
    with tempfile.TemporaryFile() as output:
        null = subprocess.DEVNULL
        with subprocess.Popen([path, *arguments], stdin=null, stdout=output, stderr=null, start_new_session=True) as process:
            try:
                code = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise OSError(f"{path} did not end within {limit_s:g} s") from None
        output.seek(0)
        printed = output.read(OUTPUT_BYTES_MAXIMUM + 1)
    if code != 0:
        raise OSError(f"{path} ended with exit code {code}")
    if len(printed) > OUTPUT_BYTES_MAXIMUM:
        raise OSError(f"{path} printed more than {OUTPUT_BYTES_MAXIMUM} bytes")
    return printed.decode("utf-8", "replace")
