"""The folder of a cluster that is for its process alone."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def temporary_folder() -> Iterator[str]:
    """A new folder, which is deleted at the end. One that a killed process leaves is the operating system's to delete."""
    path = tempfile.mkdtemp(prefix="triplicate-")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
