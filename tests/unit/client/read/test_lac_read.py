"""How far a ledger is confirmed: by quorum, by the first news, by explicit records; what counts as an answer and what does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.client.cluster import QUICK, FakeCluster, fake_cluster, run
from triplicate.client import LedgerReader
from triplicate.config import ClientSettings
from triplicate.errors import BookieError, ReadFailed, Unauthorized
from triplicate.ledger import EntryCodec
from triplicate.wire import BookieInfoRequest, ListEntriesRequest, ReadLacRequest, ReadRequest, Status

WIRES = [QUICK, replace(QUICK, wire="v3")]
EVERYONE = "abc"


async def tell(cluster: FakeCluster, reader: LedgerReader, names: str, last_add_confirmed: int, *, damaged: bool = False) -> None:
    """Give bookies an explicit record."""
    await cluster.settled(reader.ledger_id, 0)
    record = EntryCodec(reader.ledger_id, reader.metadata.digest_type, b"").encode_lac(last_add_confirmed)
    for name in names:
        cluster[name].ledgers[reader.ledger_id].explicit_lac = record[:-1] + b"?" if damaged else record


@pytest.mark.parametrize("settings", WIRES)
def test_an_explicit_record_confirms_more_than_the_entries(settings: ClientSettings) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(settings) as client:
            writer = await client.create()
            for _ in range(5):
                await writer.append(b"x")
            reader = await client.open(writer.ledger_id)
            assert await reader.read_last_confirmed() == 3
            assert await reader.read_explicit_last_confirmed() is None
            await tell(cluster, reader, "b", 4)
            assert await reader.try_last_confirmed() == 3, "entries alone do not say it"
            cluster["a"].when(ReadLacRequest, "hold")
            assert await reader.read_explicit_last_confirmed() == 4
            assert reader.last_add_confirmed == 4
            assert len(await reader.read(0, 4)) == 5

    run(main())


def test_a_damaged_record_says_nothing() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            for _ in range(3):
                await writer.append(b"x")
            reader = await client.open(writer.ledger_id)
            await tell(cluster, reader, EVERYONE, 2, damaged=True)
            assert await reader.read_last_confirmed() == 1
            with pytest.raises(ReadFailed, match="damaged"):
                await reader.read_explicit_last_confirmed()

    run(main())


def test_a_record_beside_an_error_counts_and_the_entries_are_asked_for() -> None:
    """BookKeeper's bookie answers so when a ledger has a record and no entry."""

    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            for _ in range(3):
                await writer.append(b"x")
            reader = await client.open(writer.ledger_id)
            await tell(cluster, reader, EVERYONE, 2)
            for bookie in cluster.bookies.values():
                bookie.record_status = Status.IO_ERROR
            assert await reader.read_last_confirmed() == 2
            assert any(isinstance(request, ReadRequest) for bookie in cluster.bookies.values() for request in bookie.seen)
            assert await reader.read_explicit_last_confirmed() == 2

    run(main())


def test_bookies_without_version_3_are_asked_for_their_last_entry() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            for _ in range(3):
                await writer.append(b"x")
            for bookie in cluster.bookies.values():
                bookie.knows_v3 = False
            reader = await client.open(writer.ledger_id)
            assert await reader.read_last_confirmed() == 1
            with pytest.raises(ReadFailed):
                await reader.read_explicit_last_confirmed()

    run(main())


@pytest.mark.parametrize("settings", WIRES)
def test_a_silent_bookie_is_unknown_and_not_empty(settings: ClientSettings) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(settings) as client:
            writer = await client.create()
            await writer.append_many([b"x", b"y"])
            reader = await client.open(writer.ledger_id)
            for name in "ab":
                cluster[name].when(object, "drop")
            for question in (reader.read_last_confirmed, reader.read_explicit_last_confirmed):
                with pytest.raises(ReadFailed, match="did not answer"):
                    await question()

    run(main())


@pytest.mark.parametrize("settings", WIRES)
def test_an_unauthorised_answer_ends_the_question_at_once(settings: ClientSettings) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(settings) as client:
            writer = await client.create()
            await writer.append_many([b"x", b"y"])
            reader = await client.open(writer.ledger_id)
            for name in "ab":
                cluster[name].when(object, "hold")
            cluster["c"].when(object, Status.UNAUTHORIZED)
            for question in (reader.read_last_confirmed, reader.try_last_confirmed, reader.read_explicit_last_confirmed):
                with pytest.raises(Unauthorized):
                    await question()

    run(main())


def test_the_first_news_is_enough_when_one_only_tries() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            await writer.append(b"x")
            reader = await client.open(writer.ledger_id)
            await writer.append(b"y")
            await writer.append(b"z")
            await cluster.settled(writer.ledger_id, 2)
            for name in "ab":
                cluster[name].when(ReadRequest, "drop")
            assert await reader.try_last_confirmed() == 1
            assert await reader.try_last_confirmed() == 1, "nobody knows more, and two say nothing"
            cluster["c"].when(ReadRequest, Status.IO_ERROR)
            with pytest.raises(ReadFailed, match="IO_ERROR"):
                await reader.try_last_confirmed()

    run(main())


@pytest.mark.parametrize("settings", WIRES)
def test_a_closed_ledger_answers_from_its_metadata(settings: ClientSettings) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(settings) as client:
            writer = await client.create()
            await writer.append_many([b"x", b"y"])
            reader = await client.open(writer.ledger_id)
            await writer.close()
            for bookie in cluster.bookies.values():
                await bookie.stop()
            assert await reader.read_explicit_last_confirmed() == 1
            assert await reader.try_last_confirmed() == 1
            assert await reader.read_last_confirmed() == 1

    run(main())


@pytest.mark.parametrize("settings", WIRES)
def test_a_bookie_lists_what_it_holds(settings: ClientSettings) -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client(settings) as client:
            writer = await client.create(ensemble_size=3, write_quorum=2)
            await writer.append_many([b"x"] * 9)
            await cluster.settled(writer.ledger_id, 8, 2)
            reader = await client.open(writer.ledger_id)
            for name in writer.metadata.last_segment.ensemble:
                listed = [entry_id for run_ in (await reader.entries_on(name)).runs() for entry_id in run_]
                assert listed == sorted(cluster[name].ledgers[writer.ledger_id].entries)
            (outsider,) = set("abcd") - set(writer.metadata.last_segment.ensemble)
            assert (await reader.entries_on(outsider)).count == 0
            cluster[outsider].when(ListEntriesRequest, Status.IO_ERROR)
            with pytest.raises(BookieError, match="IO_ERROR"):
                await reader.entries_on(outsider)

    run(main())


@pytest.mark.parametrize("settings", WIRES)
def test_a_bookie_reports_its_space(settings: ClientSettings) -> None:
    async def main() -> None:
        async with fake_cluster("a") as cluster, cluster.client(settings) as client:
            info = await client.bookie_info("a")
            assert (info.total_bytes, info.free_bytes) == (1000, 900)
            cluster["a"].when(BookieInfoRequest, Status.IO_ERROR)
            with pytest.raises(BookieError, match="IO_ERROR"):
                await client.bookie_info("a")

    run(main())
