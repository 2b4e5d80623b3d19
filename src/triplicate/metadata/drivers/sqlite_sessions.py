"""How sessions on one machine know of each other's death: a lock file each, and a heartbeat in it.

A session holds an exclusive `flock` on a file of its own. The kernel frees it the moment the process ends, however it ends, so a
free lock means death at once. A process that is stopped keeps its lock; so each session also writes the time since boot into its
file about once a second, and one that has not done so for `HEARTBEAT_LIMIT_S` is dead as well. The clock is CLOCK_BOOTTIME, which
every process of the machine shares and nobody can set.

The file is opened anew by whoever looks, since `flock` belongs to the open file and not to the process: sessions of one process see
each other as those of other processes do. This is also why a tree must be opened after any fork: a forked child would inherit the lock
and keep it held.

This module is the only place of the driver that reads a clock.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress

from triplicate.errors import ConnectionLost

HEARTBEAT_INTERVAL_S = 1.0
HEARTBEAT_LIMIT_S = 10.0

ATTEMPTS_MAX = 20

_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_seconds() -> float:
    """Seconds since the machine started, sleep included; the same for every process."""
    return time.clock_gettime(_BOOT_CLOCK)


def pause(seconds: float) -> None:
    """Block the calling thread (a worker's, never the loop's)."""
    time.sleep(seconds)


class SessionLock:
    """A session's own lock file. Make it with `take`."""

    def __init__(self, directory: str, name: str, descriptor: int) -> None:
        self.name = name
        self._path = os.path.join(directory, name)
        self._descriptor = descriptor

    @classmethod
    def take(cls, directory: str) -> SessionLock:
        """Make a lock file of a fresh name, lock it and write the first heartbeat.

        Raises:
            OSError: the directory cannot be written.
            ConnectionLost: a cleaner took each of many attempts for an orphan, which cannot happen by chance.
        """
        os.makedirs(directory, exist_ok=True)
        for _ in range(ATTEMPTS_MAX):
            name = f"{os.getpid()}-{os.urandom(8).hex()}.lock"
            path = os.path.join(directory, name)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Between our open and our lock a cleaner may have taken the file for an orphan and deleted it.
                if os.stat(path).st_ino == os.fstat(descriptor).st_ino:
                    lock = cls(directory, name, descriptor)
                    lock.beat()
                    return lock
            except (BlockingIOError, FileNotFoundError):
                os.close(descriptor)
                continue
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)
        raise ConnectionLost(f"no session lock could be taken in {directory}")

    def beat(self) -> None:
        """Say that this session is alive. Costs a write into the page cache; needs no place in the database."""
        if self._descriptor >= 0:
            os.pwrite(self._descriptor, b"%020d\n" % int(boot_seconds() * 1000), 0)

    def release(self) -> None:
        """Give the lock up and remove the file; idempotent."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with suppress(FileNotFoundError):
                os.unlink(self._path)
            os.close(descriptor)


def is_dead(directory: str, name: str, *, judge_heartbeat: bool) -> bool:
    """Whether the session that owned a lock file is over.

    Args:
        judge_heartbeat: whether a held lock without heartbeat counts as death. A looker that has itself slept (the whole machine may
            have) passes False and gives the others the time to catch up.
    """
    try:
        descriptor = os.open(os.path.join(directory, name), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    except PermissionError:
        return False  # Another user's: it cannot be judged, so it is alive.
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        beat = os.pread(descriptor, 32, 0).strip()
        return judge_heartbeat and beat.isdigit() and boot_seconds() - int(beat) / 1000 > HEARTBEAT_LIMIT_S
    else:
        return True
    finally:
        os.close(descriptor)


def remove_lock(directory: str, name: str) -> None:
    """Remove the lock file of a dead session."""
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(directory, name))


def remove_orphans(directory: str, known: list[str]) -> None:
    """Remove lock files that belong to no session: their makers died between making the file and storing the session."""
    owned = dict.fromkeys(known)
    for name in sorted(os.listdir(directory)):
        if name.endswith(".lock") and name not in owned and is_dead(directory, name, judge_heartbeat=False):
            remove_lock(directory, name)
