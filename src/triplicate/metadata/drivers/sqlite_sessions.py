"""Detection of dead sessions on one machine: each session has a lock file with a heartbeat in it.

A session holds an exclusive `flock` on its own file. The kernel releases it when the process ends, however it ends, so a free lock means a
dead session. A stopped process keeps its lock. So each session also writes the time since boot into its file about once a second; a session
without a heartbeat for `HEARTBEAT_LIMIT_S` is dead, too. The clock is CLOCK_BOOTTIME, which all processes of the machine share and which
cannot be set.

Each check opens the file again, because `flock` belongs to the open file description and not to the process. Sessions of one process thus
see each other like those of other processes. For the same reason a tree must be opened after any fork: a forked child would inherit the
lock and keep it held.

Only this module of the driver reads a clock.
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
    """Block the calling thread, which must be a worker's thread."""
    time.sleep(seconds)


class SessionLock:
    """A session's own lock file. Create it with `acquire`."""

    def __init__(self, directory: str, name: str, descriptor: int) -> None:
        self.name = name
        self._path = os.path.join(directory, name)
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, directory: str) -> SessionLock:
        """Create a lock file with a new name, lock it and write the first heartbeat.

        Raises:
            OSError: the directory is not writable.
            ConnectionLost: other sessions removed the file of each of `ATTEMPTS_MAX` attempts as an orphan.
        """
        os.makedirs(directory, 0o700, exist_ok=True)
        for _ in range(ATTEMPTS_MAX):
            name = f"{os.getpid()}-{os.urandom(8).hex()}.lock"
            path = os.path.join(directory, name)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Between the open and the lock another session may have removed the file as an orphan.
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
        """Write the heartbeat. This costs one write into the page cache and does not touch the database."""
        if self._descriptor >= 0:
            os.pwrite(self._descriptor, b"%020d\n" % int(boot_seconds() * 1000), 0)

    def release(self) -> None:
        """Release the lock and remove the file. Idempotent."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with suppress(FileNotFoundError):
                os.unlink(self._path)
            os.close(descriptor)


def is_dead(directory: str, name: str, *, judge_heartbeat: bool) -> bool:
    """Whether the session that owned a lock file is dead.

    Args:
        judge_heartbeat: whether a held lock with an old heartbeat means a dead session. A caller that was itself asleep (perhaps with the
            whole machine) passes False, so that the others can catch up.
    """
    try:
        descriptor = os.open(os.path.join(directory, name), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    except PermissionError:
        return False  # The file belongs to another user and cannot be checked: assume a live session.
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
    """Remove lock files without a session: their processes died between creating the file and storing the session."""
    owned = dict.fromkeys(known)
    for name in sorted(os.listdir(directory)):
        if name.endswith(".lock") and name not in owned:
            _remove_if_free(directory, name)


def _remove_if_free(directory: str, name: str) -> None:
    """Remove a lock file that nobody holds, while holding its lock: a new session that locks it next finds that its file is gone."""
    try:
        descriptor = os.open(os.path.join(directory, name), os.O_RDWR | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return  # Removed by another session, or another user's.
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove_lock(directory, name)
    except BlockingIOError:
        return
    finally:
        os.close(descriptor)
