"""Directories are made durably, by any form of their path."""

from __future__ import annotations

from pathlib import Path

import pytest

from triplicate.bookie.files import make_directory, nearest
from triplicate.runtime.real_disk import RealDisk


class Noting(RealDisk):
    def __init__(self) -> None:
        self.synced: list[str] = []

    def sync_directory(self, path: str) -> None:
        self.synced.append(path)
        super().sync_directory(path)


@pytest.mark.parametrize(
    ("path", "synced"),
    [("journal/current", [".", "journal"]), ("a/b/current", [".", "a", "a/b"]), ("current", [".", "."])],
)
def test_a_relative_directory_has_its_name_synced_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, synced: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    disk = Noting()
    make_directory(disk, path)
    assert (tmp_path / path).is_dir()
    assert disk.synced == synced


def test_an_absolute_directory_has_all_names_synced_that_were_made(tmp_path: Path) -> None:
    disk = Noting()
    make_directory(disk, f"{tmp_path}/a/b/current")
    assert disk.synced == [str(tmp_path), f"{tmp_path}/a", f"{tmp_path}/a/b"]


def test_what_is_nearest_above_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    disk = RealDisk()
    assert nearest(disk, f"{tmp_path}/a/b") == str(tmp_path)
    assert nearest(disk, "a/b") == "."
    assert nearest(disk, "/") == "/"
    assert nearest(disk, "/no-such-folder/a") == "/"
