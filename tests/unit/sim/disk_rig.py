"""A simulated disk with files on it."""

from __future__ import annotations

import random

from triplicate.runtime import Disk
from triplicate.sim.disk import SimulatedDisk
from triplicate.sim.recorder import Recorder
from triplicate.sim.virtual_loop import Life, VirtualLoop


def make(seed: int = 1, total_bytes: int = 1 << 40) -> tuple[SimulatedDisk, Disk, VirtualLoop]:
    loop = VirtualLoop()
    disk = SimulatedDisk("node", random.Random(seed), Recorder(loop.time), total_bytes=total_bytes)
    disk.make_directory("/data")
    return disk, disk.port(Life("node"), loop), loop


def reopened(disk: SimulatedDisk, loop: VirtualLoop) -> Disk:
    return disk.port(Life("node", 2), loop)


def durable_file(disk: Disk, path: str, content: bytes) -> None:
    file = disk.open(path, create=True)
    file.pwrite([content], 0)
    file.sync()
    disk.sync_directory(path.rpartition("/")[0])
