"""One client writes, the other recovers: the writer is fenced, acknowledged entries stay, and all agree on the ledger's end."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.interop.bookies import Cluster
from tests.interop.driver import FENCED, LEDGER_CLOSED, Driver, JavaError
from tests.interop.scenes import (
    JAVA,
    LIMIT_S,
    PLAYERS,
    SEED,
    SIZE,
    WIRES,
    StoppableClient,
    append_all,
    bookie_of,
    expected,
    later,
    read_by_us,
    value,
)
from tests.interop.stand import CLUSTERS, Stand, java_settings, our_settings
from tests.interop.talk import Talk
from tests.waiting import wait_until
from triplicate import DigestType, LedgerState
from triplicate.errors import LedgerClosed, LedgerFenced
from triplicate.ledger import EntryCodec
from triplicate.wire import AddRequest, AddResponse, Status

PASSWORD = b"recovery"
LOAD = 20_000
STOPPED_AFTER = 100
"""Entries that are confirmed when the writer is stopped."""
CONFIRMED = 40
TAIL = 3
"""Entries stored by fewer bookies than the ack quorum, or by just as many."""


@pytest.fixture(scope="module")
def stoppable(stand: Stand) -> Iterator[dict[str, Driver]]:
    """A separate driver per release, since the test stops it."""
    drivers: dict[str, Driver] = {}
    yield drivers
    for driver in drivers.values():
        driver.close()


def driver_of(stand: Stand, stoppable: dict[str, Driver], release: str) -> Driver:
    if release not in stoppable:
        stoppable[release] = stand.new_driver(release)
    return stoppable[release]


def check(stand: Stand, cluster: Cluster, release: str, ledger_id: int, last: int) -> None:
    """Both clients, over both wires, see the same closed ledger with every entry."""
    for wire in WIRES:
        java = stand.java_client(release, cluster, wire)
        reading = java.open(ledger_id, password=PASSWORD)
        state = reading.state()
        assert (state.closed, state.last_add_confirmed, state.length) == (True, last, (last + 1) * SIZE)
        assert reading.read(0, last) == expected(0, last)
        reading.close()
        facts = java.metadata_of(ledger_id)
        assert (facts.state, facts.last_entry_id, facts.length) == (LedgerState.CLOSED, last, (last + 1) * SIZE)
        assert read_by_us(stand, stand.our_client(cluster, wire), ledger_id, last, password=PASSWORD) == expected(0, last)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("bookies", CLUSTERS)
def test_our_client_recovers_the_ledger_of_a_stopped_java_writer(
    stand: Stand, stoppable: dict[str, Driver], bookies: str, wire: str, java_release: str
) -> None:
    cluster = stand.cluster(bookies)
    driver = driver_of(stand, stoppable, java_release)
    client = driver.connect(cluster.uri, wire=wire, settings=java_settings())
    ledger = client.create(ensemble_size=cluster.ensemble_size, password=PASSWORD)
    appending = later(lambda: ledger.append_many(LOAD, size=SIZE, seed=SEED))
    wait_until(lambda: ledger.state().last_add_confirmed >= STOPPED_AFTER, LIMIT_S, "the load runs")
    driver.pause()
    try:
        reader = stand.run(stand.our_client(cluster, wire).recover(ledger.ledger_id, password=PASSWORD))
    finally:
        driver.resume()
    last = reader.last_add_confirmed
    outcome = appending.result(LIMIT_S)
    acknowledged = [entry_id for entry_id in outcome.entry_ids if entry_id is not None]
    assert acknowledged == list(range(len(acknowledged)))
    assert STOPPED_AFTER <= acknowledged[-1] <= last
    # The writer had appends in flight; none succeeded after the fence.
    failures = [error.code for error in outcome.errors if error is not None]
    assert len(failures) == LOAD - len(acknowledged) > 0
    assert set(failures) <= {FENCED, LEDGER_CLOSED}
    assert failures[0] == FENCED
    with pytest.raises(JavaError) as refused:
        ledger.append(b"too late")
    assert refused.value.code in (FENCED, LEDGER_CLOSED)
    check(stand, cluster, java_release, ledger.ledger_id, last)
    stand.run(reader.aclose())
    client.close()


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("bookies", CLUSTERS)
def test_java_recovers_the_ledger_of_a_stopped_writer_of_ours(stand: Stand, bookies: str, wire: str, java_release: str) -> None:
    cluster = stand.cluster(bookies)
    with StoppableClient(cluster, our_settings(wire)) as ours:
        writer = ours.run(ours.client.create(ensemble_size=cluster.ensemble_size, password=PASSWORD))
        appending = later(lambda: ours.run(append_all(writer, 0, LOAD)))
        wait_until(lambda: writer.last_add_confirmed >= STOPPED_AFTER, LIMIT_S, "the load runs")
        ours.pause()
        try:
            reading = stand.java_client(java_release, cluster, wire).open(writer.ledger_id, password=PASSWORD, recovery=True)
            last = reading.state().last_add_confirmed
        finally:
            ours.resume()
        outcomes = appending.result(LIMIT_S)
        acknowledged = [outcome for outcome in outcomes if isinstance(outcome, int)]
        assert acknowledged == list(range(len(acknowledged)))
        assert STOPPED_AFTER <= acknowledged[-1] <= last
        failures = [outcome for outcome in outcomes if not isinstance(outcome, int)]
        assert len(failures) == LOAD - len(acknowledged) > 0
        assert all(isinstance(failure, LedgerFenced) for failure in failures), failures[0]
        with pytest.raises((LedgerFenced, LedgerClosed)):
            ours.run(writer.append(b"too late"))
    check(stand, cluster, java_release, writer.ledger_id, last)
    reading.close()


@pytest.mark.parametrize("writer", PLAYERS)
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("bookies", CLUSTERS)
def test_both_recover_at_once_and_agree(stand: Stand, bookies: str, wire: str, writer: str, java_release: str) -> None:
    """Behind the confirmed entries are some that one, two and three bookies stored, as a writer leaves that ends half-way."""
    cluster = stand.cluster(bookies)
    ours, java = stand.our_client(cluster, wire), stand.java_client(java_release, cluster, wire)
    for _ in range(3):
        ledger_id = half_written(stand, cluster, wire, writer, java_release)
        start = threading.Barrier(2)

        def by_us(ledger_id: int = ledger_id, start: threading.Barrier = start) -> tuple[int, int | None]:
            start.wait(LIMIT_S)
            reader = stand.run(ours.recover(ledger_id, password=PASSWORD))
            assert reader.is_closed
            return reader.last_add_confirmed, reader.length

        def by_java(ledger_id: int = ledger_id, start: threading.Barrier = start) -> tuple[int, int | None]:
            start.wait(LIMIT_S)
            state = java.open(ledger_id, password=PASSWORD, recovery=True).state()
            assert state.closed
            return state.last_add_confirmed, state.length

        recovering = later(by_us), later(by_java)
        found = [one.result(LIMIT_S) for one in recovering]
        assert found[0] == found[1]
        last, _ = found[0]
        assert CONFIRMED - 1 <= last < CONFIRMED + TAIL
        check(stand, cluster, java_release, ledger_id, last)


def half_written(stand: Stand, cluster: Cluster, wire: str, writer: str, release: str) -> int:
    """A ledger left open."""
    if writer == JAVA:
        ledger = stand.java_client(release, cluster, wire).create(ensemble_size=cluster.ensemble_size, password=PASSWORD)
        ledger_id = ledger.ledger_id
        assert ledger.append_many(CONFIRMED, size=SIZE, seed=SEED).acknowledged() == list(range(CONFIRMED))
    else:
        appender = stand.run(stand.our_client(cluster, wire).create(ensemble_size=cluster.ensemble_size, password=PASSWORD))
        ledger_id = appender.ledger_id
        stand.run(append_all(appender, 0, CONFIRMED))
        appender.abandon()
    metadata = stand.run(stand.our_client(cluster, wire).metadata_of(ledger_id))
    codec = EntryCodec(ledger_id, DigestType.CRC32C, PASSWORD)
    for more in range(TAIL):
        entry_id = CONFIRMED + more
        body = codec.encode(entry_id, CONFIRMED - 1, (entry_id + 1) * SIZE, value(entry_id))
        # The first of them is on all its bookies, the last on one.
        for step in range(3 - more):
            bookie_id = metadata.last_segment.ensemble[(entry_id + step) % metadata.ensemble_size]
            talk = Talk(bookie_of(cluster, bookie_id), wire)
            assert talk.ask(AddRequest(ledger_id, entry_id, codec.master_key, body)) == AddResponse(Status.OK, ledger_id, entry_id)
            talk.close()
    return ledger_id
