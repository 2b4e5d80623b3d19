"""Faults of disks: slow, full, a sync that fails, bit rot."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

from triplicate.bookie.core.entry_log_format import SIZE, BlockType, EntryLogScanner, decode_run_table
from triplicate.errors import CorruptionError
from triplicate.sim.disk import SimulatedDisk
from triplicate.sim.disk_image import Inode
from triplicate_simulator.cluster.bookie_setup import JOURNAL_DIRECTORY, LEDGER_DIRECTORY, ledger_directories
from triplicate_simulator.cluster.plan import Fault, Value
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.faults.fault_kind import FaultTargets, undo_at_end

KIB = 1024
BLOCK_BYTES = 4096
LATE_GROUPS = 6
ENTRY_LOG_SUFFIX = ".entries"
JOURNAL_SUFFIX = ".journal"
STRETCH_BYTES, STRETCH_STEP_BYTES = 24 * KIB, 300
"""A rotten stretch of an entry log, and the distance between its flipped bits: nearly every entry in it is hit."""
ROTTEN_SHARE = 0.7
"""Share of the entries of a disk that rot one by one."""
GROUP_MAGIC = b"TPJG"
"""A group of a journal begins with this, at a multiple of a block. The file's number is 8 bytes behind it."""


def draw_slow(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw a disk whose writes and syncs take many times as long."""
    options = {"factor": rng.choice([10.0, 50.0, 300.0])}
    return Fault("disk_slow", at_s, rng.choice(targets.bookies), lasts_s=rng.choice([0.5, 3.0, 10.0]), options=options)


async def slow(context: RunContext, fault: Fault) -> None:
    """Slow a disk down for a while."""
    disk = context.world.disk(fault.target)
    before = disk.syncs
    context.announce_fault("disk_slow", node=fault.target, factor=float(fault.options["factor"]))
    disk.slow(float(fault.options["factor"]))
    with undo_at_end(lambda: disk.slow(1.0)):
        await asyncio.sleep(fault.lasts_s)
    if disk.syncs > before:
        context.count_fault("disk_slow")


def draw_full(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw a disk that has little or no space left."""
    options = {"free_bytes": rng.choice([0, 16 * KIB, 100 * KIB, 300 * KIB])}
    return Fault("disk_full", at_s, rng.choice(targets.bookies), lasts_s=rng.choice([2.0, 6.0, 12.0]), options=options)


def draw_directory_full(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault | None:
    """Draw one ledger directory that has little or no space left, while the others have room."""
    directories = ledger_directories(targets.storage)
    if len(directories) < 2:
        return None
    options: dict[str, Value] = {"free_bytes": rng.choice([0, 16 * KIB, 100 * KIB]), "prefix": rng.choice(directories) + "/"}
    return Fault("directory_full", at_s, rng.choice(targets.bookies), lasts_s=rng.choice([2.0, 6.0, 12.0]), options=options)


async def full(context: RunContext, fault: Fault) -> None:
    """Fill a disk with foreign files, and delete them later."""
    disk, node, prefix = context.world.disk(fault.target), context.cluster.bookies[fault.target], str(fault.options.get("prefix", "/"))
    refused, writes = disk.refused_writes, disk.operations
    node.excuse_failures()
    context.announce_fault(fault.kind, node=fault.target, free_bytes=int(fault.options["free_bytes"]), under=prefix)
    disk.fill(int(fault.options["free_bytes"]), prefix)
    with undo_at_end(lambda: disk.relieve(prefix)):
        await asyncio.sleep(fault.lasts_s)
        noticed = node.alive and node.bookie is not None and node.bookie.read_only
    # A bookie with other directories need not try to write in a full one.
    if noticed or disk.refused_writes > refused or (prefix != "/" and disk.operations > writes):
        context.count_fault(fault.kind)


def draw_sync_failed(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw a sync that fails, once."""
    place = rng.choice([JOURNAL_DIRECTORY, JOURNAL_DIRECTORY, LEDGER_DIRECTORY, "/"])
    return Fault("sync_failed", at_s, rng.choice(targets.bookies), lasts_s=3.0, options={"prefix": place})


async def sync_failed(context: RunContext, fault: Fault) -> None:
    """Let the next sync fail; its data is lost. The bookie fails, and is started again."""
    disk, node, prefix = context.world.disk(fault.target), context.cluster.bookies[fault.target], str(fault.options["prefix"])
    before = disk.failed_syncs
    node.excuse_failures()
    context.announce_fault("sync_failed", node=fault.target, under=prefix)
    disk.fail_next_sync(prefix)
    await asyncio.sleep(fault.lasts_s)
    if disk.failed_syncs == before:
        disk.failing_syncs.remove(prefix)
    else:
        context.count_fault("sync_failed")


def draw_rot(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault | None:
    """Draw a change of a synced bit. `draw_faults` chooses the bookie: at most ack quorum - 1 of a seed lose data."""
    if targets.losses_max < 1:
        return None
    place = rng.choice(["journal", "ledgers", "entries"])
    # A bookie does not read again the data it has in memory: only a restart finds the rot.
    options: dict[str, Value] = {"place": place, "bits": rng.choice([1, 1, 3]), "restarts": rng.random() < 0.6}
    return Fault("bit_rot", at_s, targets.bookies[0], lasts_s=rng.choice([0.1, 2.0]), options=options)


def draw_directory_rot(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault | None:
    """Draw a rotten stretch of an entry log in one of several ledger directories; the others stay intact."""
    directories = ledger_directories(targets.storage)
    if targets.losses_max < 1 or len(directories) < 2:
        return None
    options: dict[str, Value] = {"place": "entries", "prefix": rng.choice(directories) + "/", "restarts": rng.random() < 0.4}
    return Fault("directory_rot", at_s, targets.bookies[0], lasts_s=rng.choice([0.1, 2.0]), options=options)


async def rot(context: RunContext, fault: Fault) -> None:
    """Flip bits on the medium. The bookie may find out when it reads, when it starts, or never."""
    disk, node = context.world.disk(fault.target), context.cluster.bookies[fault.target]
    rng = context.world.rng("rot", fault.target, fault.at_s)
    places: list[str] = []
    if fault.options["place"] == "entries":
        stretch = rot_stretch(disk, rng, str(fault.options.get("prefix", LEDGER_DIRECTORY)))
        places += [f"{stretch[0]}:{stretch[1]}"] if stretch is not None else []
    else:
        for _ in range(int(fault.options.get("bits", 1))):
            place = rot_journal(disk, rng) if fault.options["place"] == "journal" else disk.rot(rng, LEDGER_DIRECTORY)
            if place is not None:
                places.append(f"{place[0]}:{place[1]}")
    if places:
        node.excuse_failures()
        node.rotten = node.rotten or f"bit rot at {places[0]}"
        context.record_fault(fault.kind, node=fault.target, places=" ".join(places))
        if fault.options.get("restarts") and node.alive:
            node.crash(keep_unsynced=True)
            await asyncio.sleep(fault.lasts_s)
            await node.restart()


def rot_journal(disk: SimulatedDisk, rng: random.Random) -> tuple[str, int] | None:
    """Flip a bit of a journal's groups, but never of the last one: such a group looks like one that a crash has torn.

    The bookie would lose its contents without knowing, for example a fence, and no protocol survives that.
    """
    spots: list[tuple[str, int, int]] = []
    for path, inode in sorted(disk.names.live.items()):
        if isinstance(inode, Inode) and path.startswith(JOURNAL_DIRECTORY) and path.endswith(JOURNAL_SUFFIX):
            data = inode.durable.data
            # Groups that the file held under another number, before it was reused, do not count.
            number = int(path.rpartition("/")[2].removesuffix(JOURNAL_SUFFIX)).to_bytes(8, "big")
            blocks = range(BLOCK_BYTES, len(data), BLOCK_BYTES)
            begins = [at for at in blocks if data.startswith(GROUP_MAGIC, at) and data[at + 8 : at + 16] == number]
            if len(begins) > 1:
                # Old groups lie before the mark and are not read again.
                spots.append((path, begins[-min(len(begins), LATE_GROUPS)], begins[-1]))
    if not spots:
        return None
    path, low, high = rng.choice(spots)
    offset = rng.randrange(low, high)
    if inode_at(disk, path).is_pending(offset):
        return None
    disk.flip_bit(path, offset, rng.randrange(8))
    return path, offset


def rot_stretch(disk: SimulatedDisk, rng: random.Random, prefix: str = LEDGER_DIRECTORY) -> tuple[str, int] | None:
    """Rot a stretch of an entry log, as a scratch on the medium does. A single flipped bit would hit an entry that is rarely read.

    Returns:
        path and first offset, or None when no bit of any entry log could be flipped.
    """
    logs = [
        (path, inode)
        for path, inode in sorted(disk.names.live.items())
        if isinstance(inode, Inode) and path.startswith(prefix) and path.endswith(ENTRY_LOG_SUFFIX) and inode.durable.data
    ]
    if not logs:
        return None
    path, inode = rng.choices(logs, [len(inode.durable.data) for _, inode in logs])[0]
    size = len(inode.durable.data)
    low = rng.randrange(max(1, size - STRETCH_BYTES))
    # A write that waits for its sync would repair the bit.
    spots = [spot for spot in range(low, min(size, low + STRETCH_BYTES), STRETCH_STEP_BYTES) if not inode.is_pending(spot)]
    for spot in spots:
        disk.flip_bit(path, spot, rng.randrange(8))
    return (path, spots[0]) if spots else None


def rot_entries(disk: SimulatedDisk, rng: random.Random) -> tuple[str, int] | None:
    """Flip a bit in most entries of all entry logs. Blocks have no checksum of their entries, so only digests show these.

    Returns:
        path and offset of the first bit, or None when there is no entry on the disk.
    """
    found = None
    for path, inode in sorted(disk.names.live.items()):
        if not (isinstance(inode, Inode) and path.startswith(LEDGER_DIRECTORY) and path.endswith(ENTRY_LOG_SUFFIX)):
            continue
        for spot in _entry_spots(path, bytes(inode.durable.data), rng):
            if rng.random() < ROTTEN_SHARE and not inode.is_pending(spot):
                disk.flip_bit(path, spot, rng.randrange(8))
                found = found or (path, spot)
    return found


def _entry_spots(path: str, data: bytes, rng: random.Random) -> Iterator[int]:
    """A place within each entry of a log, up to its first damaged block."""
    scanner = EntryLogScanner(lambda size, offset: data[offset : offset + size], len(data), path)
    try:
        for info, table in scanner.scan():
            if info.type is BlockType.RUN:
                run = decode_run_table(info, table, path)
                for number in range(info.count):
                    offset, size = run.extent(number)
                    yield info.body_offset + offset + SIZE.size + rng.randrange(size)
    except CorruptionError:
        return


def inode_at(disk: SimulatedDisk, path: str) -> Inode:
    """The file of this name."""
    inode = disk.names.live[path]
    assert isinstance(inode, Inode), f"{path} is no file"
    return inode
