"""A simulated machine whose disk holds an index."""

from __future__ import annotations

from triplicate.bookie.core.entry_log_format import BlockInfo, BlockType
from triplicate.runtime import Disk
from triplicate.sim import World

PATH = "/data/index.db"
CACHE = 1 << 20


class Machine:
    def __init__(self, seed: int = 1) -> None:
        self.world = World(seed)
        self.world.disk("node").make_directory("/data")
        self.host = self.world.start_host("node")

    @property
    def disk(self) -> Disk:
        return self.host.port.disk

    def crash(self) -> None:
        self.host.crash()
        self.host = self.world.start_host("node")

    def flip(self, path: str, offset: int) -> None:
        self.world.disk("node").flip_bit(path, offset)

    def read(self, path: str) -> bytes:
        file = self.disk.open(path)
        return file.pread(file.size(), 0)

    def write(self, path: str, data: bytes) -> None:
        file = self.disk.open(path, create=True)
        file.truncate(0)
        file.pwrite([data], 0)

    def size(self, path: str) -> int:
        file = self.disk.open(path)
        try:
            return file.size()
        finally:
            file.close()


def run_of(ledger: int, first: int, last: int, flush: int = 1, offset: int = 4096) -> BlockInfo:
    return BlockInfo(BlockType.RUN, offset, flush, ledger, first, last, last - first + 1, 16 * (last - first + 1), 100)
