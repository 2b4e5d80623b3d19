"""Publishing: all or none, once per batch, and what is refused; staging ledgers and their sweep."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.log.fake import Stage, play, read_values
from tests.unit.log.publish_rig import staged
from tests.unit.metadata.lagging import LaggingTree
from triplicate.errors import (
    ArgumentError,
    ConnectionLost,
    HandleClosed,
    LedgerFenced,
    LogOwned,
    NoSuchLedger,
    NoSuchLog,
    RecordTooLarge,
    Unauthorized,
)
from triplicate.log import LogClientSettings, LogSettings, StagedLedger, StagingOrigin, decode_entry
from triplicate.log.publishing import publication
from triplicate.log.store.head_store import HeadStore
from triplicate.metadata import InjectedFault


def test_a_batch_is_published_once() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        parts = [await staged(logs, [b"%d" % number], partition=number) for number in range(4)]
        first = await logs.publish("l", parts, application="app", batch=7)
        assert (first.first_offset, first.end_offset, first.already, first.batch) == (0, 4, False, 7)
        again = [await staged(logs, [b"%d" % number], partition=number) for number in range(4)]
        second = await logs.publish("l", again, application="app", batch=7)
        assert (second.first_offset, second.end_offset, second.already) == (0, 4, True)
        assert (await logs.publish("l", again, application="app", batch=6)).already
        assert await logs.end_offset("l") == 4
        state = await logs.last_batch("l", "app")
        assert state is not None
        assert (state.batch, state.first_offset, state.end_offset) == (7, 0, 4)
        assert await logs.last_batch("l", "other") is None
        other = await logs.publish("l", again, application="other app/ü", batch=7)
        assert (other.first_offset, other.already) == (4, False)
        assert await read_values(logs, "l", 0, 8) == [b"0", b"1", b"2", b"3"] * 2

    play(scene)


@pytest.mark.parametrize("applied", [True, False])
def test_a_publish_of_unknown_outcome_happens_once(applied: bool) -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        parts = [await staged(logs, [b"a"]), await staged(logs, [b"b"])]
        lost: list[str] = []

        def fault(session: int, operation: str, path: str) -> InjectedFault | None:
            if operation != "multi" or len(lost) >= 2:
                return None
            lost.append(path)
            error = ConnectionLost("lost")
            return InjectedFault(raise_after=error) if applied else InjectedFault(raise_before=error)

        stage.store.fault = fault
        published = await logs.publish("l", parts, application="app", batch=1)
        assert len(lost) == 2
        assert (published.first_offset, published.end_offset) == (0, 2)
        without = await logs.publish("l", [await staged(logs, [b"c"])])
        assert (without.first_offset, without.end_offset, without.batch) == (2, 3, -1)
        assert await read_values(logs, "l", 0, 3) == [b"a", b"b", b"c"]

    play(scene)


def test_publishers_race_and_each_batch_is_there_once() -> None:
    async def scene(stage: Stage) -> None:
        first = stage.logs()
        await first.create("l")

        async def publish(application: str) -> None:
            logs = stage.logs()
            for batch in range(5):
                parts = [await staged(logs, [b"%s %d %d" % (application.encode(), batch, part)]) for part in range(2)]
                await logs.publish("l", parts, application=application, batch=batch)

        # Two of them are the same application, as when a driver was thought dead and is not.
        racing = [asyncio.ensure_future(publish(name)) for name in ("a", "b", "a")]
        for task in racing:
            await task
        assert await first.end_offset("l") == 20
        values = await read_values(first, "l", 0, 20)
        assert sorted(value or b"" for value in values) == sorted(
            b"%s %d %d" % (name, batch, part) for name in (b"a", b"b") for batch in range(5) for part in range(2)
        )
        for name in (b"a", b"b"):
            mine = [value for value in values if value is not None and value.startswith(name)]
            assert mine == sorted(mine)

    play(scene)


def test_a_publish_without_application_is_repeated_without_harm() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        parts = [await staged(logs, [b"a"]), await staged(logs, [b"b"])]
        assert not (await logs.publish("l", parts)).already
        again = await logs.publish("l", parts)
        assert (again.first_offset, again.end_offset, again.already) == (0, 2, True)
        with pytest.raises(ArgumentError, match="segment of log 'l' already"):
            await logs.publish("l", [parts[0], await staged(logs, [b"c"])])
        assert await logs.end_offset("l") == 2

    play(scene)


def test_empty_batches_are_remembered_and_empty_ledgers_left_out() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        empty = await staged(logs, [])
        assert empty.records == 0
        assert (await logs.publish("l", [empty, await staged(logs, [b"a"])], application="app", batch=1)).end_offset == 1
        nothing = await logs.publish("l", [], application="app", batch=2)
        assert (nothing.first_offset, nothing.end_offset, nothing.already) == (1, 1, False)
        assert (await logs.publish("l", [], application="app", batch=2)).already
        assert len(await logs.segments("l")) == 1

    play(scene)


def test_only_sealed_staging_ledgers_of_this_log_are_published() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        await logs.create("other")
        unsealed = await logs.staging(StagingOrigin("l"))
        await unsealed.append_many([b"a"])
        with pytest.raises(ArgumentError, match="not sealed"):
            await logs.publish("l", [unsealed.ledger_id])
        foreign = await staged(logs, [b"a"], log="other")
        with pytest.raises(ArgumentError, match="staging of other, not staging for log 'l'"):
            await logs.publish("l", [foreign])
        async with await logs.writer("other", owner="w") as writer:
            await writer.append(b"x")
            ledger_id = writer.ledger_id
        with pytest.raises(ArgumentError, match="log of other"):
            await logs.publish("l", [ledger_id])
        good = await staged(logs, [b"a"])
        lying = StagedLedger(good.ledger_id, 1, 1, good.last_entry + 1, 0, 0)
        with pytest.raises(ArgumentError, match="as its writer said"):
            await logs.publish("l", [lying])
        with pytest.raises(ArgumentError, match="twice"):
            await logs.publish("l", [good, good.ledger_id])
        with pytest.raises(ArgumentError, match="both"):
            await logs.publish("l", [good], application="app")
        with pytest.raises(NoSuchLedger):
            await logs.publish("l", [4711])
        with pytest.raises(NoSuchLog):
            await logs.publish("nowhere", [good])
        assert await logs.end_offset("l") == 0

    play(scene)


def test_many_ledgers_are_published_in_one_change_through_pages() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        parts = [await staged(logs, [b"%d" % number], partition=number) for number in range(300)]
        before = stage.store.get("/triplicate/test/logs/l")[1].version
        await logs.publish("l", parts, application="app", batch=1)
        data, stat = stage.store.get("/triplicate/test/logs/l")
        assert stat.version == before + 1
        assert len(data) < 64 * 1024
        assert len((await logs.head("l")).pages) > 3
        assert await read_values(logs, "l", 0, 300) == [b"%d" % number for number in range(300)]
        assert await logs.is_published("l", [part.ledger_id for part in parts])

    play(scene)


def test_a_staging_ledger_says_what_it_is_and_counts_from_its_own_beginning() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(LogClientSettings(entry_target_bytes=1024, staging_window_entries=2))
        await logs.create("l", LogSettings(compression="none"))
        async with await logs.staging(StagingOrigin("l", "app", "query", 3, 4, 5)) as writer:
            await writer.append_many([b"%d" % number + b"." * 100 for number in range(50)], timestamps_us=range(50))
            sealed = await writer.seal()
        ledger = stage.bookies.ledger(sealed.ledger_id)
        custom = {key: value.decode() for key, value in ledger.metadata.custom.items()}
        del custom["created"]
        assert custom == {
            "application": "triplicate", "component": "staging", "log": "l", "app": "app", "query": "query", "batch": "3",
            "partition": "4", "attempt": "5", "staging": "2",
        }  # fmt: skip
        views = [decode_entry(entry.payload) for entry in ledger.entries]
        assert len(views) > 3
        assert [view.header.first_index for view in views] == [sum(view.count for view in views[:place]) for place in range(len(views))]
        assert (sealed.records, sealed.last_entry, sealed.size_bytes) == (50, len(views) - 1, ledger.metadata.length)
        assert (sealed.min_time_us, sealed.max_time_us) == (views[0].header.wall_time_us, views[-1].header.wall_time_us)
        with pytest.raises(HandleClosed):
            await writer.append_many([b"late"])
        by_id = await logs.publish("l", [sealed.ledger_id])
        assert by_id.end_offset == 50
        (segment,) = await logs.segments("l")
        assert (segment.records, segment.size_bytes, segment.last_entry) == (50, sealed.size_bytes, sealed.last_entry)
        assert (segment.min_time_us, segment.max_time_us) == (sealed.min_time_us, sealed.max_time_us)

    play(scene)


def test_a_staging_ledger_left_by_an_error_is_deleted() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        with pytest.raises(RecordTooLarge):
            async with await logs.staging(StagingOrigin("l")) as writer:
                await writer.append_many([b"x" * (5 * 1024 * 1024)])
        assert stage.bookies.ledgers == {}

    play(scene)


def test_a_staging_ledger_whose_entries_are_not_acknowledged_is_deleted() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")

        async def stage_into_a_fenced_ledger() -> None:
            async with await logs.staging(StagingOrigin("l")) as writer:
                stage.bookies.ledger(writer.ledger_id).fenced = True
                await writer.append_many([b"a"])

        with pytest.raises(LedgerFenced):
            await stage_into_a_fenced_ledger()
        assert stage.bookies.ledgers == {}

    play(scene)


def test_discarding_spares_what_is_published() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        kept, dropped = await staged(logs, [b"a"]), await staged(logs, [b"b"])
        await logs.publish("l", [kept], application="app", batch=1)
        assert not await logs.is_published("l", [kept.ledger_id, dropped.ledger_id])
        assert await logs.discard("l", [kept.ledger_id, dropped.ledger_id]) == [dropped.ledger_id]
        assert await read_values(logs, "l", 0, 1) == [b"a"]
        assert not await logs.is_published("nowhere", [kept.ledger_id])

    play(scene)


def test_discarding_does_not_trust_a_server_that_is_behind() -> None:
    async def scene(stage: Stage) -> None:
        tree = LaggingTree(stage.store)
        logs = stage.logs()
        await logs.create("l")
        kept = await staged(logs, [b"a"])
        head = logs._store.path("l")
        before, _ = await tree.get(head)
        await logs.publish("l", [kept], application="app", batch=1)
        behind = stage.logs()
        behind._store.tree = tree
        tree.behind = {head: before}
        assert await behind.discard("l", [kept.ledger_id]) == []
        assert await read_values(logs, "l", 0, 1) == [b"a"]

    play(scene)


def test_the_sweep_deletes_old_orphans_only() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        await logs.create("gone")
        published, orphan = await staged(logs, [b"a"]), await staged(logs, [b"b"])
        homeless = await staged(logs, [b"c"], log="gone")
        await logs.publish("l", [published])
        await logs.delete("gone")
        foreign = await stage.client_of(logs).create(custom={"application": b"somebody else"})
        assert await logs.sweep_orphans() == []
        stage.wall_us = stage.host.clock.wall_us() + 86_401 * 1_000_000
        young = await staged(logs, [b"d"])
        assert sorted(await logs.sweep_orphans()) == sorted([orphan.ledger_id, homeless.ledger_id])
        assert sorted(stage.bookies.ledgers) == sorted([published.ledger_id, foreign.ledger_id, young.ledger_id])

    play(scene)


@pytest.mark.parametrize("alive", [False, True])
def test_ledgers_that_no_reader_of_the_log_could_open_are_not_published(alive: bool) -> None:
    async def scene(stage: Stage) -> None:
        logs, forgetful = stage.logs(LogClientSettings(ledger_password="secret")), stage.logs()
        await logs.create("l")
        writer = await logs.writer("l", owner="w")
        await writer.append(b"a")
        if not alive:
            await writer.close()
        part = await staged(forgetful, [b"x"])
        with pytest.raises(Unauthorized, match=r"log 'l': .* have another password"):
            await forgetful.check_publish("l")
        for publisher in (forgetful, logs):
            with pytest.raises(Unauthorized, match="have another password"):
                await publisher.publish("l", [part], application="app", batch=1)
        await logs.check_publish("l")
        published = await logs.publish("l", [await staged(logs, [b"b"])], application="app", batch=1)
        assert (published.first_offset, published.by_writer) == (1, alive)
        await writer.close()
        # An empty log takes the password of its first writer.
        await forgetful.create("m")
        await forgetful.publish("m", [await staged(forgetful, [b"y"], log="m")])

    play(scene)


def test_a_writer_does_not_list_ledgers_that_it_could_not_open(monkeypatch: pytest.MonkeyPatch) -> None:
    check = publication.check_password

    async def scene(stage: Stage) -> None:
        logs, older = stage.logs(LogClientSettings(ledger_password="secret")), stage.logs()

        async def only_writer(store: HeadStore, *args: Any) -> None:
            # A publisher of an earlier release does not look.
            if store is logs.store:
                await check(store, *args)

        monkeypatch.setattr(publication, "check_password", only_writer)
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            with pytest.raises(LogOwned, match="'w', which has refused the batch 10 times: nothing was published"):
                await older.publish("l", [await staged(older, [b"x"])], application="app", batch=1)
            assert (writer.admitted, await writer.append(b"a")) == (0, 0)

    play(scene)


@pytest.mark.parametrize("application", ["app", None])
def test_a_publish_whose_answer_was_lost_before_others_followed_is_not_called_a_repetition(application: str | None) -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        part, following = await staged(logs, [b"a", b"b"]), await staged(others, [b"c"])
        session, lost = stage.client_of(logs).metadata.tree.session_id, asyncio.Event()

        def fault(of: int, operation: str, path: str) -> InjectedFault | None:
            if of != session or operation != "multi" or lost.is_set():
                return None
            lost.set()
            return InjectedFault(delay_after_s=0.05, raise_after=ConnectionLost("lost"))

        stage.store.fault = fault
        batch = 1 if application else None
        publishing_ = asyncio.ensure_future(logs.publish("l", [part], application=application, batch=batch))
        await lost.wait()
        assert (await others.publish("l", [following])).first_offset == 2
        published = await publishing_
        assert (published.first_offset, published.end_offset, published.already, published.by_writer) == (0, 2, False, False)
        assert (await logs.publish("l", [part], application=application, batch=batch)).already
        assert await read_values(logs, "l", 0, 3) == [b"a", b"b", b"c"]

    play(scene)
