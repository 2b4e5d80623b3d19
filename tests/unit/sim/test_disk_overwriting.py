"""Writing over durable bytes of the simulated disk, as a journal does that uses its files again."""

from __future__ import annotations

import random

from tests.unit.sim.disk_rig import durable_file, make, reopened
from triplicate.sim.disk_image import SECTOR_BYTES


def test_bytes_that_were_written_over_and_not_synced_come_back_or_mix_by_sectors() -> None:
    outcomes: list[bytes] = []
    for seed in range(200):
        disk, port, loop = make(seed)
        durable_file(port, "/data/file", b"a" * 4096)
        port.open("/data/file").pwrite([b"b" * 4096], 0)
        disk.crash()
        outcomes.append(reopened(disk, loop).open("/data/file").pread(10_000, 0))
    assert all(len(outcome) == 4096 and set(outcome) <= set(b"ab") for outcome in outcomes)
    assert outcomes.count(b"a" * 4096) > 50, "mostly the old bytes are there again"
    mixed = [outcome for outcome in outcomes if len(set(outcome)) == 2]
    assert mixed
    sectors = [[outcome[at : at + SECTOR_BYTES] for at in range(0, 4096, SECTOR_BYTES)] for outcome in mixed]
    assert all(len(set(sector)) == 1 for parts in sectors for sector in parts)
    assert any(parts[0][0] == ord("a") for parts in sectors), "a later sector may be there without the first"


def test_rot_damages_only_durable_bytes_that_are_not_about_to_be_overwritten() -> None:
    for seed in range(30):
        disk, port, _ = make(seed)
        file = port.open("/data/file", create=True)
        assert disk.rot(random.Random(seed)) is None
        file.append([bytes(100)])
        assert disk.rot(random.Random(seed)) is None
        file.sync()
        file.pwrite([b"x" * 50], 0)
        file.append([b"y" * 50])
        found = disk.rot(random.Random(seed), "/data")
        assert found is not None
        assert 50 <= found[1] < 100
        file.pwrite([b"x" * 100], 0)
        assert disk.rot(random.Random(seed)) is None
        assert disk.rotten_bits == 1
