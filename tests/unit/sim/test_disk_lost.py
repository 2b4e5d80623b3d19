"""The simulated disk when a part of it is full, when it is replaced, and when a file is lost."""

from __future__ import annotations

import errno

import pytest

from tests.unit.sim.disk_rig import durable_file, make, reopened


def test_a_part_of_a_disk_is_filled_and_the_rest_has_room() -> None:
    disk, port, _ = make()
    disk.make_directory("/data/one")
    disk.make_directory("/data/two")
    durable_file(port, "/data/one/file", b"a" * 1000)
    disk.fill(500, "/data/one/")
    assert disk.is_filled
    assert port.free_space("/data/one")[0] == 500
    assert port.free_space("/data/two")[0] == port.free_space("/data")[0] > 1 << 30
    file = port.open("/data/one/file")
    file.append([b"b" * 400])
    with pytest.raises(OSError, match="No space") as refused:
        file.append([b"c" * 200])
    assert refused.value.errno == errno.ENOSPC
    durable_file(port, "/data/two/file", b"d" * 1000)
    assert disk.refused_writes == 1
    disk.relieve("/data/one/")
    file.append([b"c" * 200])
    assert not disk.is_filled


def test_a_disk_that_is_wiped_holds_nothing_and_no_crash_brings_it_back() -> None:
    disk, port, loop = make()
    durable_file(port, "/data/file", b"gone")
    disk.wipe()
    disk.crash()
    assert disk.used_bytes() == 0
    assert not reopened(disk, loop).exists("/data")


@pytest.mark.parametrize("synced", [True, False])
def test_a_file_that_is_lost_does_not_come_back(synced: bool) -> None:
    for seed in range(10):
        disk, port, loop = make(seed)
        port.open("/data/file", create=True).pwrite([b"gone"], 0)
        if synced:
            port.sync_directory("/data")
        disk.delete_durably("/data/file")
        disk.crash()
        assert not reopened(disk, loop).exists("/data/file")
