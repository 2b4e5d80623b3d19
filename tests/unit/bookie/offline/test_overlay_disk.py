"""Directories that are made on a disk whose changes stay in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from triplicate.bookie.offline.overlay_disk import OverlayDisk
from triplicate.runtime.real_disk import RealDisk


def test_a_directory_that_is_made_has_what_is_made_in_it_and_the_space_of_the_one_above(tmp_path: Path) -> None:
    below = RealDisk()
    disk, made = OverlayDisk(below, given_up="RESERVE"), f"{tmp_path}/a/b"
    with pytest.raises(FileNotFoundError):
        disk.names(made)
    disk.mkdir(made)
    assert disk.names(made) == []
    disk.open(f"{made}/file", create=True).pwrite([b"content"], 0)
    assert disk.names(made) == ["file"]
    assert disk.free_space(made)[1] == below.free_space(str(tmp_path))[1]
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_there_keeps_its_files(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    disk = OverlayDisk(RealDisk())
    disk.mkdir(str(tmp_path))
    assert disk.names(str(tmp_path)) == ["file"]
