"""The doctor's check of files and directories that others than their owner may use."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator, Sequence

from triplicate.config import BookieSettings

OTHERS = 0o077
"""The permissions of the group and of everyone."""

CURRENT = "current"
"""The part of a bookie's directory that has the data."""


def file_mode_findings(settings: BookieSettings, metadata_uri: str) -> Iterator[str]:
    """Files and directories that others may use, each with the command that closes it. Missing files are no finding.

    A bookie's directory may be open, as a mount point often is, if the data in it is not.
    """
    for directory in dict.fromkeys((*settings.journal_directories, *settings.ledger_directories)):
        current = os.path.join(directory, CURRENT)
        if _others(directory) and _others(current):
            yield f"others than its owner may use {current} (mode {_mode(current):04o}); run chmod 700 {shlex.quote(current)}"
    if metadata_uri.startswith("sqlite:///"):
        path = metadata_uri.removeprefix("sqlite://")
        open_files = [name for name in (path, f"{path}-wal", f"{path}-shm") if _others(name)]
        if open_files:
            yield f"others than its owner may read the metadata in {path} (mode {_mode(path):04o}); run chmod 600 {_quoted(open_files)}"
        sessions = f"{path}-sessions"
        if _others(sessions):
            yield f"others than its owner may use {sessions} (mode {_mode(sessions):04o}); run chmod 700 {shlex.quote(sessions)}"


def _others(path: str) -> bool:
    try:
        return bool(_mode(path) & OTHERS)
    except OSError:
        return False


def _mode(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def _quoted(paths: Sequence[str]) -> str:
    return " ".join(shlex.quote(path) for path in paths)
