"""Directories are made durably, by any form of their path."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.unit.bookie.index_rig import Machine
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


@pytest.mark.parametrize("path", ["/data/current", "/data/a/current", "/data/a/b/c/current", "/new/a/current", "/new", "/data/a/"])
def test_a_directory_outlives_a_loss_of_power_with_those_above_it(path: str) -> None:
    machine = Machine()
    make_directory(machine.disk, path)
    machine.crash()
    assert machine.disk.exists(path)


@pytest.mark.parametrize("made", ["/data/a/b", "/data/a/b/current"])
def test_a_life_that_ended_before_the_sync_is_made_good(made: str) -> None:
    machine = Machine()
    machine.disk.mkdir("/data/a")
    machine.disk.sync_directory("/data")
    machine.disk.mkdir(made)
    make_directory(machine.disk, "/data/a/b/current")
    machine.crash()
    assert machine.disk.exists("/data/a/b/current")


def test_each_name_is_synced_after_the_one_above_it() -> None:
    machine, order = Machine(), list[str]()

    def note(kind: str, path: str) -> None:
        if kind == "sync_directory":
            order.append(path)

    machine.world.disk("node").before_operation = note
    make_directory(machine.disk, "/data/a/b/current")
    assert order == ["/data", "/data/a", "/data/a/b"]


def test_a_directory_of_somebody_elses_need_not_be_readable() -> None:
    machine = Machine()
    machine.disk.mkdir("/data/a")

    def refuse(kind: str, path: str) -> None:
        if kind == "sync_directory" and path == "/data":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    machine.world.disk("node").before_operation = refuse
    make_directory(machine.disk, "/data/a/current")
    with pytest.raises(PermissionError):
        make_directory(machine.disk, "/data/b/current")
