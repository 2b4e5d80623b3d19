"""The doctor's checks of the machine: open files, writes and syncs, free space, the clock, shared disks.

Files created by the checks have no name, so nothing is left behind.
"""

from __future__ import annotations

import errno
import os
import resource
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from triplicate.config import BookieSettings
from triplicate.errors import EnvironmentFault

OTHER_FILES = 200
"""Allowance for logs, journals, index and Python's own files."""
CLOCK_BEGAN = 1_700_000_000
"""An earlier time of the clock is wrong: this code is newer."""
CLOCK_SLACK_S = 300
PROBE = b"doctor" * 1000


class MachineWarning(EnvironmentFault):
    """A condition that does not prevent a start."""


def machine_findings(settings: BookieSettings, *, starts: bool = True, makes: bool = False) -> Iterator[EnvironmentFault]:
    """All problems and warnings of the machine.

    Args:
        starts: whether a bookie starts in spite of a full disk.
        makes: whether a start creates missing directories, as for a new bookie.
    """
    yield from _open_files(settings)
    places = _places(settings, makes=makes)
    yield from _clock(list(places))
    for directory, place in places.items():
        yield from _space(directory, place, settings, starts=starts)
        yield from _writing(directory, place, starts=starts)
    yield from _one_disk(places)


def _places(settings: BookieSettings, *, makes: bool) -> dict[str, str]:
    """The path of each directory's files, or of the existing parent in which it would be created."""
    places: dict[str, str] = {}
    for directory in dict.fromkeys((*settings.journal_directories, *settings.ledger_directories)):
        if makes or os.path.isdir(directory):
            place = os.path.join(directory, "current")
            while not os.path.exists(place):
                place = os.path.dirname(place) or "."
            places[directory] = place
    return places


def _open_files(settings: BookieSettings) -> Iterator[EnvironmentFault]:
    # A server raises the soft limit to the hard one when it starts.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < settings.connections + OTHER_FILES:
        yield MachineWarning(
            f"the hard limit of open files is {hard}, and bookie.connections allows {settings.connections}: raise it (ulimit -Hn) to "
            f"{settings.connections + OTHER_FILES}, or lower bookie.connections to {max(1, hard - OTHER_FILES)}"
        )


def _clock(directories: list[str]) -> Iterator[EnvironmentFault]:
    now = time.time()
    if now < CLOCK_BEGAN:
        day = time.strftime("%Y-%m-%d", time.gmtime(now))
        yield EnvironmentFault(f"the clock says {day}, which is in the past: set it, and keep it synchronized")
    for directory in directories:
        current = Path(directory) / "current"
        try:
            newest = max([entry.stat().st_mtime for entry in current.iterdir()], default=0.0) if current.is_dir() else 0.0
        except PermissionError:
            continue  # Another check reports it.
        if newest > now + CLOCK_SLACK_S:
            yield MachineWarning(f"{directory}: files from {newest - now:.0f} s in the future: the clock was set back, or is wrong: set it")


def _space(directory: str, place: str, settings: BookieSettings, *, starts: bool) -> Iterator[EnvironmentFault]:
    facts = os.statvfs(place)
    total, free = facts.f_blocks * facts.f_frsize, facts.f_bavail * facts.f_frsize
    used = 1.0 - free / total if total else 1.0
    for limit, what in ((settings.disk_usage_threshold, "starts read-only"), (settings.disk_usage_warn_threshold, "warns")):
        if used > limit:
            effect = f"the bookie {what}; " if starts else ""
            yield MachineWarning(f"{directory}: {used:.1%} of the disk are in use, over {limit:.0%}: {effect}free some space")
            return


def _writing(directory: str, place: str, *, starts: bool) -> Iterator[EnvironmentFault]:
    """Check that a file can be written and synced."""
    try:
        descriptor = os.open(place, os.O_TMPFILE | os.O_RDWR, 0o600)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
            yield MachineWarning(f"{directory}: syncs were not tested, since this file system has no files without a name")
        else:
            yield EnvironmentFault(f"{directory}: cannot be used ({error.strerror}): mount it, or make it writable for this user")
        return
    try:
        os.write(descriptor, PROBE)
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            yield EnvironmentFault(f"{directory}: writing and syncing fails ({error.strerror}): replace the disk")
        else:
            yield MachineWarning(f"{directory}: the disk is full: {'the bookie starts read-only; ' if starts else ''}free some space")
    finally:
        os.close(descriptor)


def _one_disk(places: Mapping[str, str]) -> Iterator[EnvironmentFault]:
    devices: dict[int, list[str]] = {}
    for directory, place in places.items():
        devices.setdefault(os.stat(place).st_dev, []).append(directory)
    for shared in devices.values():
        if len(shared) > 1:
            yield MachineWarning(f"{', '.join(shared)} are on one disk: flushes slow the journal there; give the journal a disk of its own")
