"""The simulated disk: what a crash keeps, what it loses, and how it tears."""

from __future__ import annotations

import asyncio
import errno
import random
from contextlib import suppress
from functools import partial

import pytest

from tests.unit.sim.disk_rig import durable_file, make, reopened
from triplicate.runtime import Group, LogDevice
from triplicate.sim.disk import SimulatedDisk
from triplicate.sim.disk_image import SECTOR_BYTES
from triplicate.sim.host import World
from triplicate.sim.virtual_loop import HostCrashed, Life, VirtualLoop


def test_synced_bytes_under_a_synced_name_survive_every_crash() -> None:
    for seed in range(50):
        disk, port, loop = make(seed)
        durable_file(port, "/data/file", b"kept")
        disk.crash()
        assert reopened(disk, loop).open("/data/file").pread(100, 0) == b"kept"


def test_unsynced_bytes_are_lost_torn_or_kept_by_the_seed() -> None:
    outcomes: list[bytes] = []
    for seed in range(200):
        disk, port, loop = make(seed)
        durable_file(port, "/data/file", b"a" * 100)
        file = port.open("/data/file")
        file.append([b"b" * 4000])
        file.append([b"c" * 4000])
        disk.crash()
        outcomes.append(reopened(disk, loop).open("/data/file").pread(10_000, 0))
    assert all(outcome.startswith(b"a" * 100) for outcome in outcomes)
    assert outcomes.count(b"a" * 100) > 50, "mostly nothing of it survives"
    torn = [outcome for outcome in outcomes if 100 < len(outcome) < 8100 and set(outcome) <= set(b"abc")]
    assert torn
    assert all(len(outcome) % SECTOR_BYTES == 0 or len(outcome) == 4100 for outcome in torn if b"\0" not in outcome)
    assert any(b"\0" in outcome or outcome[100:101] == b"\0" for outcome in outcomes), "sometimes sectors are written out of order"


def test_a_name_is_durable_only_after_its_directory_was_synced() -> None:
    lost = 0
    for seed in range(40):
        disk, port, loop = make(seed)
        file = port.open("/data/file", create=True)
        file.pwrite([b"x"], 0)
        file.sync()
        disk.crash()
        lost += not reopened(disk, loop).exists("/data/file")
    assert 20 <= lost < 40


def test_a_rename_is_all_or_nothing() -> None:
    outcomes: dict[bytes, int] = {}
    for seed in range(60):
        disk, port, loop = make(seed)
        durable_file(port, "/data/current", b"old")
        durable_file(port, "/data/next", b"new")
        port.rename("/data/next", "/data/current")
        disk.crash()
        after = reopened(disk, loop)
        content = after.open("/data/current").pread(10, 0)
        assert after.exists("/data/next") == (content == b"old")
        outcomes[content] = outcomes.get(content, 0) + 1
    assert sorted(outcomes) == [b"new", b"old"]


def test_a_deletion_not_synced_may_come_undone() -> None:
    back = 0
    for seed in range(40):
        disk, port, loop = make(seed)
        durable_file(port, "/data/file", b"x")
        port.delete("/data/file")
        assert not port.exists("/data/file")
        disk.crash()
        back += reopened(disk, loop).exists("/data/file")
    assert 20 <= back < 40


def test_a_directory_not_synced_takes_its_files_along() -> None:
    for seed in range(40):
        disk, port, loop = make(seed)
        port.mkdir("/data/deep/er")
        durable_file(port, "/data/deep/er/file", b"x")
        disk.crash()
        after = reopened(disk, loop)
        assert after.exists("/data/deep/er/file") <= after.exists("/data/deep/er") <= after.exists("/data/deep")


def test_a_file_deleted_while_open_stays_readable() -> None:
    _, port, _ = make()
    durable_file(port, "/data/file", b"still here")
    file = port.open("/data/file", readonly=True)
    port.delete("/data/file")
    assert file.pread(100, 0) == b"still here"
    with pytest.raises(OSError, match="reading only"):
        file.append([b"no"])


def test_names_open_modes_and_missing_things_behave_as_on_posix() -> None:
    _, port, _ = make()
    port.mkdir("/data/b")
    port.open("/data/a", create=True).close()
    assert port.names("/data") == ["a", "b"]
    with pytest.raises(FileExistsError):
        port.open("/data/a", create=True, exclusive=True)
    with pytest.raises(FileNotFoundError):
        port.open("/data/none")
    with pytest.raises(FileNotFoundError):
        port.open("/nowhere/file", create=True)
    with pytest.raises(FileNotFoundError):
        port.names("/nowhere")
    with pytest.raises(IsADirectoryError):
        port.open("/data/b")
    port.delete("/data/none")


def test_allocated_space_reads_as_zeros_and_writes_into_it_keep_the_size() -> None:
    disk, port, loop = make()
    file = port.open("/data/journal", create=True)
    file.allocate(0, 1 << 20)
    assert file.size() == 1 << 20
    assert file.pread(10, 5000) == bytes(10)
    file.pwrite([b"ab", b"cd"], 4096)
    assert (file.size(), file.pread(6, 4095)) == (1 << 20, b"\0abcd\0")
    file.sync()
    port.sync_directory("/data")
    disk.crash()
    assert reopened(disk, loop).open("/data/journal").pread(4, 4096) == b"abcd"


def test_truncation_forgets_and_extends_with_zeros() -> None:
    _, port, _ = make()
    file = port.open("/data/file", create=True)
    file.append([b"abcdef"])
    file.truncate(2)
    file.truncate(4)
    assert file.pread(10, 0) == b"ab\0\0"


def test_a_full_disk_says_so_and_keeps_what_it_has() -> None:
    _, port, _ = make(total_bytes=1000)
    file = port.open("/data/file", create=True)
    file.append([bytes(900)])
    with pytest.raises(OSError, match="No space") as caught:
        file.append([bytes(200)])
    assert caught.value.errno == errno.ENOSPC
    assert file.size() == 900
    assert port.free_space("/data") == (100, 1000)


def test_bytes_of_a_failed_sync_are_lost_for_good() -> None:
    for seed in range(20):
        disk, port, loop = make(seed)
        durable_file(port, "/data/file", b"safe")
        disk.failing_syncs.append("/data")
        file = port.open("/data/file")
        file.append([b"gone"])
        with pytest.raises(OSError, match="injected"):
            file.sync()
        file.sync()
        assert file.pread(8, 0) == b"safegone"
        disk.crash()
        assert reopened(disk, loop).open("/data/file").pread(8, 0) == b"safe"


def test_a_lock_is_exclusive_until_released_or_its_holder_dies() -> None:
    disk, port, loop = make()
    release = port.lock("/data/lock")
    second = reopened(disk, loop)
    with pytest.raises(BlockingIOError):
        second.lock("/data/lock")
    release()
    second.lock("/data/lock")
    disk.crash()
    reopened(disk, loop).lock("/data/lock")


def test_a_flipped_bit_is_seen_and_stays() -> None:
    disk, port, loop = make()
    durable_file(port, "/data/file", b"\x00\x00")
    disk.flip_bit("/data/file", 1, 3)
    disk.crash()
    assert reopened(disk, loop).open("/data/file").pread(2, 0) == b"\x00\x08"


def test_the_operation_hook_can_crash_the_node_at_any_point() -> None:
    """At the n-th operation nothing of that operation has happened, and all before it has."""
    contents: list[bytes] = []
    for point in range(1, 6):
        disk, port, loop = make()
        durable_file(port, "/data/file", b"0")
        seen = 0

        def strike(kind: str, path: str, point: int = point) -> None:
            nonlocal seen
            seen += 1
            if seen == point:
                raise HostCrashed("node")

        disk.before_operation = strike
        file = port.open("/data/file")
        with suppress(HostCrashed):
            for number in range(1, 6):
                file.pwrite([str(number).encode()], 0)
                file.sync()
        assert seen == point
        contents.append(file.pread(1, 0))
        disk.crash()
        assert disk.before_operation is None
        assert reopened(disk, loop).open("/data/file").pread(1, 0) in (str(point // 2).encode(), str((point - 1) // 2).encode())
    assert contents == [b"0", b"1", b"1", b"2", b"2"]


def test_a_log_device_groups_what_waits_and_answers_after_the_sync() -> None:
    world = World(1)
    host = world.start_host("node")
    world.disk("node").make_directory("/data")

    async def node() -> None:
        file = host.port.disk.open("/data/journal", create=True)
        host.port.disk.sync_directory("/data")
        groups: list[list[bytes]] = []
        position = 0

        def form(items: list[bytes]) -> tuple[Group, int]:
            nonlocal position
            offset = position
            position += sum(map(len, items))
            return Group(file, offset, items), len(items)

        def done(items: list[bytes]) -> None:
            groups.append(items)
            assert world.disk("node").syncs == len(groups)

        def failed(items: list[bytes], error: OSError) -> None:
            raise AssertionError from error

        device = host.port.disk.log_device("journal", form, done, failed)
        device.submit(b"a")
        device.submit(b"b")
        await asyncio.sleep(0.0001)
        device.submit(b"c")
        device.submit(b"d")
        assert groups == []
        await device.close()
        assert groups == [[b"a", b"b"], [b"c", b"d"]]
        assert file.pread(10, 0) == b"abcd"

    async def main() -> None:
        await host.call(node())

    world.run(main())
    assert world.loop.failures == []


def test_a_log_device_tells_of_a_write_before_the_sync_where_the_group_asks_for_it() -> None:
    world = World(1)
    host = world.start_host("node")
    world.disk("node").make_directory("/data")
    seen: list[tuple[str, list[bytes], int]] = []

    async def node() -> None:
        file = host.port.disk.open("/data/journal", create=True)

        def form(items: list[bytes]) -> tuple[Group, int]:
            return Group(file, 0, items, report_written=items[0] == b"early"), len(items)

        def failed(items: list[bytes], error: OSError) -> None:
            raise AssertionError from error

        def note(what: str, items: list[bytes]) -> None:
            seen.append((what, items, world.disk("node").syncs))

        device = host.port.disk.log_device("journal", form, partial(note, "done"), failed, partial(note, "written"))
        device.submit(b"early")
        await asyncio.sleep(0.1)
        device.submit(b"usual")
        await device.close()

    async def main() -> None:
        await host.call(node())

    world.run(main())
    assert seen == [("written", [b"early"], 0), ("done", [b"early"], 1), ("done", [b"usual"], 2)]


def test_a_log_device_that_fails_hands_everything_back_and_takes_nothing_more() -> None:
    world = World(1)
    host = world.start_host("node")
    world.disk("node").make_directory("/data")
    world.disk("node").failing_syncs.append("/data/journal")
    lost: list[bytes] = []

    async def node() -> None:
        file = host.port.disk.open("/data/journal", create=True)

        def failed(items: list[bytes], error: OSError) -> None:
            assert error.errno == errno.EIO
            lost.extend(items)

        def done(items: list[bytes]) -> None:
            raise AssertionError("nothing was synced")

        device = host.port.disk.log_device("journal", lambda items: (Group(file, 0, items), len(items)), done, failed)
        device.submit(b"a")
        await asyncio.sleep(0.0001)
        device.submit(b"b")
        await device.close()
        assert lost == [b"a", b"b"]
        with pytest.raises(OSError, match="nothing more"):
            device.submit(b"c")

    async def main() -> None:
        await host.call(node())

    world.run(main())
    assert world.loop.failures == []


def test_a_crash_during_a_group_answers_nobody() -> None:
    world = World(1)
    host = world.start_host("node")
    world.disk("node").make_directory("/data")
    answered: list[bytes] = []

    async def node() -> None:
        file = host.port.disk.open("/data/journal", create=True)
        device = host.port.disk.log_device(
            "journal", lambda items: (Group(file, 0, items), len(items)), answered.extend, lambda items, error: None
        )
        device.submit(b"a")
        await asyncio.sleep(10.0)

    async def main() -> None:
        host.start(node())
        await asyncio.sleep(0.0002)
        host.crash()
        await asyncio.sleep(10.0)
        assert answered == []
        with pytest.raises(HostCrashed):
            host.port.disk.exists("/data")

    world.run(main())
    assert world.loop.failures == []
    world.close()


def test_a_disk_that_was_filled_refuses_until_it_is_relieved() -> None:
    disk, port, _ = make(total_bytes=10_000)
    file = port.open("/data/file", create=True)
    file.append([bytes(1000)])
    disk.fill(500)
    assert port.free_space("/data") == (500, 10_000)
    file.append([bytes(400)])
    with pytest.raises(OSError, match="No space") as caught:
        file.append([bytes(200)])
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(OSError, match="No space"):
        file.allocate(0, 5000)
    file.pwrite([b"in place"], 100)
    file.append([bytes(100)])
    assert (file.size(), disk.refused_writes) == (1500, 2)
    port.delete("/data/file")
    port.open("/data/other", create=True).append([bytes(1400)])
    disk.relieve()
    port.open("/data/other").append([bytes(8000)])
    assert (port.free_space("/data"), disk.refused_writes) == ((600, 10_000), 2)


def test_space_that_a_crash_takes_back_is_counted() -> None:
    for seed in range(20):
        disk, port, loop = make(seed, total_bytes=1000)
        durable_file(port, "/data/file", bytes(900))
        port.open("/data/file").truncate(0)
        disk.crash()
        after = reopened(disk, loop)
        free, _ = after.free_space("/data")
        file = after.open("/data/other", create=True)
        with pytest.raises(OSError, match="No space"):
            file.append([bytes(free + 1)])
        file.append([bytes(free)])


def test_a_slow_disk_takes_longer_to_write_and_sync() -> None:
    def times(factor: float) -> tuple[float, float]:
        disk, port, _ = make()
        disk.slow(factor)
        file = port.open("/data/file", create=True)
        disk.pop_io_time()
        file.append([bytes(1_000_000)])
        wrote = disk.pop_io_time()
        file.sync()
        return wrote, disk.pop_io_time()

    normal, slow = times(1.0), times(20.0)
    assert slow == pytest.approx((normal[0] * 20.0, normal[1] * 20.0))
    assert min(normal) > 0.0


def test_rot_flips_one_durable_bit_under_the_prefix_and_counts_it() -> None:
    struck: set[tuple[str, int]] = set()
    for seed in range(40):
        disk, port, loop = make(seed)
        disk.make_directory("/data/ledgers")
        durable_file(port, "/data/journal", bytes(100))
        durable_file(port, "/data/ledgers/a", bytes(30))
        durable_file(port, "/data/ledgers/b", bytes(60))
        found = disk.rot(random.Random(seed), "/data/ledgers")
        assert found is not None
        path, offset = found
        struck.add(found)
        content = port.open(path).pread(100, 0)
        assert [index for index, byte in enumerate(content) if byte] == [offset]
        assert content[offset].bit_count() == 1
        assert port.open("/data/journal").pread(100, 0) == bytes(100)
        disk.crash()
        assert reopened(disk, loop).open(path).pread(100, 0) == content
        assert disk.rotten_bits == 1
    assert {path for path, _ in struck} == {"/data/ledgers/a", "/data/ledgers/b"}
    assert len(struck) > 25


def test_what_faults_cost_is_counted() -> None:
    totals = {"lost": 0, "torn": 0, "failed": 0}
    for seed in range(60):
        disk, port, loop = make(seed)
        durable_file(port, "/data/file", b"a" * 100)
        disk.crash()
        assert (disk.lost_bytes, disk.torn_writes, disk.failed_syncs) == (0, 0, 0)
        port = reopened(disk, loop)
        file = port.open("/data/file")
        file.append([b"b" * 4000])
        disk.crash()
        content = port_content(disk, loop)
        kept = content.count(b"b")
        assert disk.lost_bytes == 4000 - kept
        assert disk.torn_writes == (0 < kept < 4000)
        totals["lost"] += disk.lost_bytes
        totals["torn"] += disk.torn_writes
        disk.fail_next_sync("/data/file")
        before = disk.lost_bytes
        file = disk.port(Life("node", 3), loop).open("/data/file")
        file.append([b"c" * 10])
        with pytest.raises(OSError, match="injected"):
            file.sync()
        assert disk.lost_bytes == before + 10
        totals["failed"] += disk.failed_syncs
    assert totals["failed"] == 60
    assert 5 < totals["torn"] < 60
    assert 60 * 4000 > totals["lost"] > 30 * 4000


def port_content(disk: SimulatedDisk, loop: VirtualLoop) -> bytes:
    return reopened(disk, loop).open("/data/file").pread(10_000, 0)


@pytest.mark.parametrize("fails", [False, True])
def test_the_sync_of_a_paused_node_completes_on_the_disk_and_is_heard_of_when_it_goes_on(fails: bool) -> None:
    world = World(1)
    host = world.start_host("node")
    disk = world.disk("node")
    disk.make_directory("/data")
    told: list[str] = []

    async def node() -> None:
        file = host.port.disk.open("/data/journal", create=True)
        host.port.disk.sync_directory("/data")
        device: LogDevice[bytes] = host.port.disk.log_device(
            "journal",
            lambda items: (Group(file, 0, items), len(items)),
            lambda items: told.append("done"),
            lambda items, error: told.append("failed"),
        )
        device.submit(b"entry")
        await asyncio.sleep(20.0)

    async def main() -> None:
        host.start(node())
        await asyncio.sleep(0.0002)
        host.pause()
        await asyncio.sleep(5.0)
        assert disk.syncs == (0 if fails else 1)
        assert told == []
        host.resume()
        await asyncio.sleep(0.001)
        assert told == ["failed" if fails else "done"]

    if fails:
        disk.fail_next_sync()
    world.run(main())
    host.crash()
    assert world.start_host("node").port.disk.open("/data/journal").pread(10, 0) == (b"" if fails else b"entry")
    world.close()


def test_a_log_device_whose_node_died_syncs_nothing_more() -> None:
    world = World(1)
    host = world.start_host("node")
    world.disk("node").make_directory("/data")

    async def node() -> None:
        file = host.port.disk.open("/data/journal", create=True)
        device: LogDevice[bytes] = host.port.disk.log_device(
            "journal", lambda items: (Group(file, 0, items), 1), lambda items: None, lambda items, error: None
        )
        device.submit(b"entry")

    async def main() -> None:
        host.start(node())
        await asyncio.sleep(0.0002)
        host.crash(keep_unsynced=True)
        await asyncio.sleep(5.0)
        assert world.disk("node").syncs == 0

    world.run(main())
    assert world.loop.failures == []
    world.close()
