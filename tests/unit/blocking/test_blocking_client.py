"""The facade without await, over a real metadata file and real bookies in another loop's thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import triplicate
from triplicate import blocking
from triplicate.bookie import Bookie
from triplicate.config import BookieSettings
from triplicate.errors import DuplicateEntry, HandleClosed, LedgerFenced, NoSuchLog, NotEnoughBookies
from triplicate.log import Appended, StagingOrigin
from triplicate.metadata import ClusterMetadata, open_tree
from triplicate.runtime import real_host


async def serve(folder: Path, names: list[str], ready: threading.Event, stop: asyncio.Event) -> None:
    host = real_host("bookies")
    tree = await open_tree(f"sqlite://{folder}/metadata.db", host)
    metadata = await ClusterMetadata.open(tree, host, create=True)
    bookies = []
    for name in names:
        settings = BookieSettings(
            bookie_id=name,
            port=0,
            journal_directories=(f"{folder}/{name}/journal",),
            ledger_directories=(f"{folder}/{name}/ledgers",),
            journal_preallocate_bytes=1 << 20,
        )
        bookies.append(await Bookie.start(host, settings, metadata))
    ready.set()
    await stop.wait()
    for bookie in bookies:
        await bookie.stop()
    await metadata.aclose()
    await tree.close()


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("cluster")
    ready = threading.Event()
    background = blocking.BackgroundLoop("bookies")
    stop: list[asyncio.Event] = []

    async def run() -> None:
        stop.append(asyncio.Event())
        await serve(folder, ["b1", "b2", "b3"], ready, stop[0])

    thread = threading.Thread(target=lambda: background.call(run()))
    thread.start()
    assert ready.wait(20)
    yield f"sqlite://{folder}/metadata.db"
    background.start(lambda: _set(stop[0])).result(5)
    thread.join(20)
    background.close()


def _set(event: asyncio.Event) -> asyncio.Future[None]:
    event.set()
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.set_result(None)
    return future


def test_a_script_writes_reads_tails_and_deletes(uri: str) -> None:
    with triplicate.blocking.connect(uri) as client:
        with client.create(custom={"mine": b"yes"}) as writer:
            assert writer.append(b"zero") == 0
            future = writer.append_nowait(b"one")
            assert writer.append_many([b"two", b"three"]) == range(2, 4)
            assert future.result(5) == 1
            assert writer.append_many_nowait([b"four"]).result(5) == range(4, 5)
            assert (writer.last_add_confirmed, writer.last_add_pushed, writer.length) == (4, 4, 19)
        with client.open(writer.ledger_id) as reader:
            assert reader.is_closed
            assert [entry.payload for entry in reader.read(1, 2)] == [b"one", b"two"]
            assert [entry.payload for entry in reader.tail(3)] == [b"three", b"four"]
            copies = [reader.read_from(bookie_id, 0) for bookie_id in ("b1", "b2", "b3")]
            assert sum(copy is not None for copy in copies) >= 2
        assert writer.ledger_id in list(client.ledger_ids())
        assert client.metadata_of(writer.ledger_id).custom["mine"] == b"yes"
        client.delete(writer.ledger_id)
        assert writer.ledger_id not in list(client.ledger_ids())


def test_a_script_chooses_ids_and_forces(uri: str) -> None:
    with blocking.connect(uri) as client:
        with client.create_adv() as adv:
            third, first = adv.append_nowait(2, b"2"), adv.append_nowait(0, b"0")
            assert first.result(5) == 0
            assert not third.done()
            with pytest.raises(DuplicateEntry):
                adv.append(2, b"again")
            assert adv.append(1, b"1") == 1
            assert third.result(5) == 2
        with client.open(adv.ledger_id) as reader:
            assert [entry.payload for entry in reader.read(0, 2)] == [b"0", b"1", b"2"]
        with client.create(deferred_sync=True) as writer:
            assert writer.append_many([b"kept"] * 10) == range(10)
            assert (writer.last_add_confirmed, writer.force(), writer.last_add_confirmed) == (-1, 9, 9)
            writer.append(b"cut off")
        with client.open(writer.ledger_id) as reader:
            assert (reader.is_closed, reader.last_add_confirmed, reader.length) == (True, 9, 40)
        with client.create_adv(deferred_sync=True) as adv:
            assert adv.append(0, b"0") == 0
            assert adv.force() == 0


def test_a_script_asks_bookies_about_an_open_ledger(uri: str) -> None:
    with blocking.connect(uri, settings=triplicate.ClientSettings(wire="v3")) as client, client.create() as writer:
        writer.append_many([b"0", b"1", b"2"])
        writer.append(b"3")
        with client.open(writer.ledger_id) as reader:
            assert [entry.payload for entry in reader.read_unconfirmed(1, 3)] == [b"1", b"2", b"3"]
            assert [entry.payload for entry in reader.read_batch(0, 2)] == [b"0", b"1"]
            assert (reader.try_last_confirmed(), reader.read_explicit_last_confirmed()) == (2, None)
            assert reader.wait_for_entry(3, 0.05) is None
            awaited = reader.wait_for_entry(2, 1.0)
            assert awaited is not None
            assert awaited.payload == b"2"
            copies = sum(reader.entries_on(bookie_id).count for bookie_id in writer.metadata.last_segment.ensemble)
            assert 2 * 4 <= copies <= 3 * 4
        assert client.bookie_info("b1").total_bytes > 0


def test_a_recovery_fences_a_writer_in_another_client(uri: str) -> None:
    with blocking.connect(uri) as one, blocking.connect(uri) as two:
        writer = one.create()
        writer.append_many([f"{i}".encode() for i in range(100)])
        with two.recover(writer.ledger_id) as reader:
            assert (reader.last_add_confirmed, reader.length) == (99, 190)
        with pytest.raises(LedgerFenced):
            writer.append(b"too late")


def test_a_script_writes_and_reads_a_log(uri: str) -> None:
    with blocking.connect(uri) as client:
        logs = client.logs()
        logs.create("events")
        with logs.writer("events", owner="script") as log_writer:
            assert log_writer.append(b"zero") == 0
            assert list(log_writer.append_many([b"one", b"two"])) == [1, 2]
            assert log_writer.append_entry_nowait([b"three"]).result(5) == range(3, 4)
            assert log_writer.acknowledged_offset == 4
        with logs.reader("events", 1) as reader:
            values = list(next(reader).values)
            while len(values) < 3:
                values += next(reader).values
            assert values == [b"one", b"two", b"three"]
            assert (reader.position, reader.end_offset(), reader.next_entry(0)) == (4, 4, None)
        (planned,) = logs.plan("events", 0, 4, 100)
        with logs.read_range(planned) as part:
            assert [value for entry in part for value in entry.values] == [b"zero", b"one", b"two", b"three"]
            part.seek(2, 4)
            entry = part.next_entry()
            assert entry is not None
            assert (entry.first_offset, [one.first_offset for one in part], part.next_entry()) == (2, [3], None)
        origin = StagingOrigin("events", "script", batch=1)
        with logs.staging(origin) as staging:
            staging.append_many([b"four"])
            sealed = staging.seal()
        assert logs.publish("events", [sealed], application="script", batch=1).first_offset == 4
        assert (logs.end_offset("events"), logs.names()) == (5, ["events"])
        logs.delete("events")
        with pytest.raises(NoSuchLog):
            logs.head("events")


def test_a_script_numbers_its_records_reads_backwards_and_saves_its_place(uri: str) -> None:
    with blocking.connect(uri) as client:
        logs = client.logs()
        logs.create("orders")
        with logs.producer("orders", "script") as producer:
            assert producer.append(b"zero", sequence=7) == Appended(7, 0)
            assert producer.append(b"zero", sequence=7) == Appended(7, 0, is_duplicate=True)
            assert [each.offset for each in producer.append_many([b"one", b"two"])] == [1, 2]
            assert producer.last_sequence == 9
        log = logs["orders"]
        assert [record.value for record in log.records(1, to="latest")] == [b"one", b"two"]
        assert [record.offset for record in log.backwards()] == [2, 1, 0]
        last = log.last_record()
        assert last is not None
        assert (last.value, logs.offset_at("orders", last.time)) == (b"two", 1), "both share an entry and its time"
        with log.consumer("billing") as consumer:
            for record in consumer:
                if record.offset == 1:
                    break
            assert consumer.save() == 2
            assert [record.value for record in consumer.next_records()] == [b"two"]
            assert (consumer.next_record(0.01), consumer.position, consumer.saved_position) == (None, 3, 2)
        assert [(item.name, item.position, item.lag) for item in logs.consumers("orders")] == [("billing", 2, 1)]
        with logs.records("orders") as records:
            assert [next(records).offset for _ in range(3)] == [0, 1, 2]
            assert records.next_record(0.01) is None
        assert logs.alter("orders", {"retain_age_s": 60}).settings.retain_age_s == 60.0
        for record in log:
            assert record.value == b"zero"
            break
        logs.delete("orders")


def test_a_script_makes_renames_drops_and_undeletes_a_database(uri: str) -> None:
    with blocking.connect(uri) as client:
        databases = client.databases()
        made = databases.create("shop")
        assert databases.names() == ["shop"]
        assert databases.rename("shop", "store").identity == made.identity
        assert databases.info("store").log == made.log
        databases.drop("store")
        assert [one.info.name for one in databases.dropped()] == ["store"]
        assert databases.undelete("store").identity == made.identity


def test_errors_come_through_and_a_closed_client_says_so(uri: str) -> None:
    with blocking.connect(uri) as client, pytest.raises(NotEnoughBookies):
        client.create(ensemble_size=5, write_quorum=3)
    client.close()
    with pytest.raises(HandleClosed):
        client.create()
