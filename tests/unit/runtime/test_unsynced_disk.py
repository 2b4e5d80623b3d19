from __future__ import annotations

import os
from pathlib import Path

import pytest

from triplicate.runtime import UnsyncedDisk


def test_what_is_written_can_be_read_and_nothing_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise AssertionError(f"descriptor {descriptor} is synced")

    monkeypatch.setattr(os, "fdatasync", fail)
    monkeypatch.setattr(os, "fsync", fail)
    disk = UnsyncedDisk()
    file = disk.open(str(tmp_path / "a"), create=True)
    file.pwrite([b"x"], 0)
    file.sync()
    disk.sync_directory(str(tmp_path))
    assert file.pread(10, 0) == b"x"
    file.close()
