"""The snapshots of a log: ledgers with content, and the list that names them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.log.fake import Stage, play
from tests.unit.log.snapshot_rig import NAME, content_of, make_snapshot, write_snapshot
from triplicate.errors import BadVersion, ConnectionLost, FormatError, NodeExists, NoSuchLedger, NoSuchLog, SnapshotDamaged
from triplicate.log import CHUNK_BYTES, LogSettings, SnapshotList, SnapshotState, sources, truncation_offset
from triplicate.log.core import snapshot_list as lists
from triplicate.log.core.snapshot_format import PREFIX
from triplicate.log.core.snapshot_list import decode_snapshots, encode_snapshots
from triplicate.log.upkeep.log_snapshots import snapshot_ledgers
from triplicate.metadata import CheckVersion, SetData, TreeOperation

CONTENT = bytes(range(256)) * 5000 + b"end"


def test_content_comes_back_as_it_was_written() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create(NAME)
        for content in (b"", b"x", CONTENT, bytes(CHUNK_BYTES), bytes(CHUNK_BYTES * 5 + 1)):
            snapshot = await write_snapshot(logs, content, position=7)
            assert (snapshot.size_bytes, snapshot.chunks) == (len(content), -(-len(content) // CHUNK_BYTES))
            assert await content_of(stage.logs(), snapshot) == content
            custom = (await logs.client.metadata_of(snapshot.ledger_id)).custom
            assert (custom["application"], custom["component"], custom["log"]) == (b"triplicate", b"snapshot", NAME.encode())

    play(scene)


@pytest.mark.parametrize("entry", [0, 1, 2, 3])
@pytest.mark.parametrize("damage", ["flipped", "missing", "swapped", "cut"])
def test_damaged_content_is_refused(entry: int, damage: str) -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create(NAME, LogSettings(compression="none"))
        snapshot = await write_snapshot(logs, CONTENT, position=7)
        entries = stage.bookies.ledgers[snapshot.ledger_id].entries
        assert len(entries) == 4
        payload = bytearray(entries[entry].payload)
        if damage == "flipped":
            payload[-2] ^= 1
        elif damage == "swapped":
            payload = bytearray(entries[(entry + 1) % 4].payload)
        elif damage == "cut":
            payload = payload[: PREFIX.size - 1]
        if damage == "missing":
            del entries[entry]
        else:
            entries[entry] = replace(entries[entry], payload=bytes(payload))
        with pytest.raises(SnapshotDamaged):
            await logs.snapshots(NAME).verify(snapshot)

    play(scene)


def test_content_that_is_another_than_the_listed_one_is_refused() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create(NAME)
        one, two = await write_snapshot(logs, b"one", position=7), await write_snapshot(logs, b"two", position=7)
        wrong = [
            replace(one, digest=two.digest),
            replace(one, ledger_id=two.ledger_id),
            replace(one, position=8),
            replace(one, size_bytes=4),
            replace(one, chunks=2),
            replace(one, identity="00" * 16),
        ]
        for snapshot in wrong:
            with pytest.raises(SnapshotDamaged):
                await logs.snapshots(NAME).verify(snapshot)
        with pytest.raises(NoSuchLedger):
            await logs.snapshots(NAME).verify(replace(one, ledger_id=1))
        entries = stage.bookies.ledgers[one.ledger_id].entries
        entries[1] = replace(entries[1], payload=entries[1].payload[:4] + b"\x02" + entries[1].payload[5:])
        with pytest.raises(FormatError, match="upgrade Triplicate"):
            await logs.snapshots(NAME).verify(one)

    play(scene)


def test_an_attempt_that_fails_leaves_no_ledger() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create(NAME)
        with pytest.raises(RuntimeError, match="given up"):
            await write_snapshot(logs, CONTENT, position=7, fail=True)
        assert stage.bookies.ledgers == {}

    play(scene)


def test_the_last_two_are_listed_and_older_ledgers_deleted() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create(NAME)
        door, after = logs.snapshots(NAME), None
        assert await door.read() == SnapshotList()
        made = []
        for position in (1, 2, 3, 4):
            snapshot = await write_snapshot(logs, b"%d" % position, position=position)
            assert await door.publish(snapshot, after)
            made.append(snapshot)
            after = snapshot.snapshot_id
        assert (await stage.logs().snapshots(NAME).read()).snapshots == tuple(made[2:])
        assert sorted(stage.bookies.ledgers) == sorted(snapshot.ledger_id for snapshot in made[2:])
        assert truncation_offset(await door.read()) == 3
        assert [snapshot.position for snapshot in sources(await door.read(), 3)] == [4]

    play(scene)


def test_of_two_attempts_at_once_one_is_listed() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create(NAME)
        one, two = await write_snapshot(logs, b"one", position=7), await write_snapshot(logs, b"two", position=8)
        assert await logs.snapshots(NAME).publish(one, None)
        assert not await stage.logs().snapshots(NAME).publish(two, None)
        assert (await logs.snapshots(NAME).read()).snapshots == (one,)
        assert two.ledger_id in stage.bookies.ledgers
        # An older copy never takes the place of a newer one.
        old = await write_snapshot(logs, b"old", position=6)
        assert not await logs.snapshots(NAME).publish(old, one.snapshot_id)

    play(scene)


def test_a_list_that_changes_between_reading_and_writing_is_read_again() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create(NAME)
        first = await write_snapshot(logs, b"1", position=1)
        assert await logs.snapshots(NAME).publish(first, None)
        snapshot, rival = await write_snapshot(logs, b"2", position=2), await write_snapshot(others, b"3", position=3)
        tree = stage.client_of(logs).metadata.tree
        multi = tree.multi

        async def overtaken(operations: list[TreeOperation]) -> None:
            tree.multi = multi  # type: ignore[method-assign]
            assert await others.snapshots(NAME).publish(rival, first.snapshot_id)
            await multi(operations)

        tree.multi = overtaken  # type: ignore[method-assign, assignment]
        assert not await logs.snapshots(NAME).publish(snapshot, first.snapshot_id)
        assert (await logs.snapshots(NAME).read()).snapshots == (first, rival)

    play(scene)


@pytest.mark.parametrize("applied", [True, False])
def test_an_unknown_outcome_is_found_out(applied: bool) -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create(NAME)
        snapshot = await write_snapshot(logs, b"1", position=1)
        tree = stage.client_of(logs).metadata.tree
        multi, calls = tree.multi, []

        async def lossy(operations: list[TreeOperation]) -> None:
            calls.append(operations)
            if len(calls) == 1:
                if applied:
                    await multi(operations)
                raise ConnectionLost("gone")
            await multi(operations)

        tree.multi = lossy  # type: ignore[method-assign, assignment]
        assert await logs.snapshots(NAME).publish(snapshot, None)
        assert (await logs.snapshots(NAME).read()).snapshots == (snapshot,)

    play(scene)


def test_a_snapshot_without_its_ledger_is_not_listed() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create(NAME)
        snapshot = await write_snapshot(logs, b"1", position=1)
        tree = stage.client_of(logs).metadata.tree
        multi, seen = tree.multi, []

        async def swept(operations: list[TreeOperation]) -> None:
            seen.extend(operations)
            if len(seen) == len(operations):
                await stage.client_of(logs).delete(snapshot.ledger_id)
            await multi(operations)

        tree.multi = swept  # type: ignore[method-assign, assignment]
        with pytest.raises(NoSuchLedger):
            await logs.snapshots(NAME).publish(snapshot, None)
        assert (await logs.snapshots(NAME).read()).snapshots == ()
        assert any(isinstance(item, CheckVersion) and item.path == logs.store.ledgers.node_path(snapshot.ledger_id) for item in seen)

    play(scene)


def test_a_damaged_snapshot_is_marked_and_the_log_not_truncated_behind_it() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create(NAME)
        door = logs.snapshots(NAME)
        made, after = [], None
        for position in (1, 2):
            made.append(await write_snapshot(logs, b"%d" % position, position=position))
            assert await door.publish(made[-1], after)
            after = made[-1].snapshot_id
        assert truncation_offset(await door.read()) == 1
        assert await door.mark_damaged(made[1].snapshot_id, "ü" * 300)
        assert not await door.mark_damaged(made[1].snapshot_id, "again")
        assert not await door.mark_damaged("unknown", "never listed")
        listed = await door.read()
        assert [snapshot.state for snapshot in listed.snapshots] == [SnapshotState.GOOD, SnapshotState.DAMAGED]
        assert truncation_offset(listed) is None
        assert sources(listed, 0) == [made[0]]
        # The next good one takes its place, and its ledger goes.
        third = await write_snapshot(logs, b"3", position=3)
        assert await door.publish(third, after)
        assert (await door.read()).snapshots == (made[0], third)
        assert made[1].ledger_id not in stage.bookies.ledgers
        assert truncation_offset(await door.read()) == 1

    play(scene)


def test_a_request_stands_until_it_is_fulfilled() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create(NAME)
        door = logs.snapshots(NAME)
        assert (await door.want(5)).wanted == 5
        assert (await door.want(3)).wanted == 5
        early = await write_snapshot(logs, b"", position=4)
        assert await door.publish(early, None)
        assert (await door.read()).wanted == 5
        late = await write_snapshot(logs, b"", position=6)
        assert await door.publish(late, early.snapshot_id)
        assert (await door.read()).wanted is None
        assert (await door.want(6)).wanted is None

    play(scene)


def test_the_deletion_of_a_log_takes_its_snapshots_along() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create(NAME)
        listed = await write_snapshot(logs, b"1", position=1)
        assert await logs.snapshots(NAME).publish(listed, None)
        late = await write_snapshot(logs, b"2", position=2)
        await logs.delete(NAME)
        assert sorted(stage.bookies.ledgers) == [late.ledger_id]
        with pytest.raises(NoSuchLog):
            await logs.snapshots(NAME).publish(late, listed.snapshot_id)
        await logs.create(NAME)
        assert await logs.snapshots(NAME).read() == SnapshotList()

    play(scene)


def test_the_sweep_finds_the_ledgers_of_killed_attempts_and_spares_those_that_are_listed() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create(NAME)
        listed, orphan = await write_snapshot(logs, b"1", position=1), await write_snapshot(logs, b"2", position=2)
        assert await logs.snapshots(NAME).publish(listed, None)
        assert (await logs.sweep(NAME))["ledgers"] == 0
        stage.wall_us = stage.host.clock.wall_us() + 86_401 * 1_000_000
        assert (await logs.sweep(NAME))["ledgers"] == 1
        assert sorted(stage.bookies.ledgers) == [listed.ledger_id]
        assert orphan.ledger_id in stage.bookies.deleted
        await logs.snapshots(NAME).verify(listed)

    play(scene)


def test_the_ledgers_of_the_list_come_with_checks_that_it_is_the_same_still() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create(NAME)
        tree = stage.client_of(logs).metadata.tree
        ids, checks = await snapshot_ledgers(logs._store, NAME)
        assert ids == frozenset()
        await tree.multi(checks)
        snapshot = await write_snapshot(logs, b"1", position=1)
        assert await logs.snapshots(NAME).publish(snapshot, None)
        with pytest.raises(NodeExists):
            await tree.multi(checks)
        ids, checks = await snapshot_ledgers(logs._store, NAME)
        assert ids == {snapshot.ledger_id}
        await tree.multi(checks)
        await logs.snapshots(NAME).want(7)
        with pytest.raises(BadVersion):
            await tree.multi(checks)

    play(scene)


def test_a_list_of_a_later_release_is_refused() -> None:
    data = encode_snapshots(SnapshotList((make_snapshot(1),)))
    for changed in (data.replace(b'"v":1', b'"v":2'), data.replace(b'"good"', b'"later"'), data.replace(b'"node":', b'"later":1,"node":')):
        with pytest.raises(FormatError, match="upgrade Triplicate"):
            decode_snapshots(changed, NAME)
    with pytest.raises(Exception, match="position"):
        decode_snapshots(data.replace(b'"position":1', b'"position":"1"'), NAME)


def test_changes_of_the_list_use_up_their_attempts() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create(NAME)
        tree = stage.client_of(logs).metadata.tree

        async def never(operations: list[TreeOperation]) -> None:
            assert not any(isinstance(item, SetData) for item in operations)
            raise BadVersion("overtaken")

        logs._store.settings = logs.settings = replace(logs.settings, change_attempts=2)
        tree.multi = never  # type: ignore[method-assign, assignment]
        with pytest.raises(BadVersion):
            await logs.snapshots(NAME).want(1)

    play(scene)


def test_the_growth_of_a_log_is_told_by_the_length_of_its_segments() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create(NAME, LogSettings(roll_size_bytes=4096, compression="none"))
        door = logs.snapshots(NAME)
        assert (await door.size_since(0), await door.length()) == (0, (-1, 0))
        async with await logs.writer(NAME, owner="w") as writer:

            def total() -> int:
                return sum(len(entry.payload) for ledger in stage.bookies.ledgers.values() for entry in ledger.entries)

            async def write(count: int, size: int) -> None:
                for _ in range(count):
                    await writer.append_entry([b"." * size])
                await writer.noop()
                await writer.noop()

            await write(10, 1000)
            assert total() * 0.95 < await door.size_since(0) <= total()
            assert 4000 < await door.size_since(5) < 7000
            marked, before = await door.length(), total()
            snapshot = replace(make_snapshot(10), log_ledger=marked[0], log_bytes=marked[1])
            # Small records after large ones: their number says nothing about the bytes.
            await write(30, 1)
            assert total() - before - 100 <= await door.grown_since(snapshot) <= total() - before + 100
            await write(10, 1000)
            assert total() - before - 100 <= await door.grown_since(snapshot) <= total() - before + 100
            assert await door.grown_since(replace(snapshot, log_ledger=1)) == await door.size_since(10)
        assert await door.size_since(50) == 0

    play(scene)


def test_a_log_behind_a_single_snapshot_stays() -> None:
    assert truncation_offset(SnapshotList()) is None
    assert truncation_offset(SnapshotList((make_snapshot(5),))) is None
    assert truncation_offset(SnapshotList((make_snapshot(5), make_snapshot(9)))) == 5
    assert lists.add(SnapshotList((make_snapshot(5),)), make_snapshot(9), None) is None
