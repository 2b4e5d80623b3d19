"""Locks of directories: a probe disturbs neither their holder nor a process that starts."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from triplicate.runtime import real_disk
from triplicate.runtime.real_disk import RealDisk

PROBES = """
import sys
from triplicate.runtime.real_disk import RealDisk
for _ in range(20):
    try:
        RealDisk().lock(sys.argv[1])()
    except BlockingIOError:
        print("held")
    else:
        print("free")
"""


def test_probes_of_another_process_leave_a_held_lock_alone(tmp_path: Path) -> None:
    lock = tmp_path / "LOCK"
    release = RealDisk().lock(str(lock))
    before = lock.stat()

    def probed() -> set[str]:
        return set(subprocess.run([sys.executable, "-c", PROBES, str(lock)], capture_output=True, text=True, check=True).stdout.split())

    assert probed() == {"held"}
    with pytest.raises(BlockingIOError):
        RealDisk().lock(str(lock))
    after = lock.stat()
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (before.st_ino, before.st_size, before.st_mtime_ns)
    release()
    assert probed() == {"free"}


def test_a_lock_that_is_probed_just_then_is_got_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = str(tmp_path / "LOCK")
    end_probe = RealDisk().lock(lock)
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        end_probe()

    monkeypatch.setattr("time.sleep", pause)
    release = RealDisk().lock(lock)
    assert pauses == [real_disk.LOCK_PAUSE_S]
    release()


def test_a_lock_that_stays_held_is_refused_within_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = str(tmp_path / "LOCK")
    release = RealDisk().lock(lock)
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    with pytest.raises(BlockingIOError):
        RealDisk().lock(lock)
    assert len(pauses) == real_disk.LOCK_ATTEMPTS - 1
    release()


def test_what_the_disk_makes_is_private_whatever_the_umask(tmp_path: Path) -> None:
    disk, before = RealDisk(), os.umask(0)
    try:
        disk.mkdir(f"{tmp_path}/bookie/ledgers/current")
        disk.mkdir(f"{tmp_path}/bookie/ledgers/current")
        disk.open(f"{tmp_path}/bookie/ledgers/current/0.log", create=True, exclusive=True).close()
        disk.lock(f"{tmp_path}/bookie/lock")()
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert modes == {"bookie": 0o700, "ledgers": 0o700, "current": 0o700, "0.log": 0o600, "lock": 0o600}
