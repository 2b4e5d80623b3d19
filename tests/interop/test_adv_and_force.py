"""Entry ids chosen by the caller, deferred sync and force, unconfirmed reads, and every read of the last-add-confirmed.

Each runs with either client on bookies of either kind; the other client checks the result.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from concurrent.futures import Future
from typing import Any

import pytest

from tests.interop.bookies import DATABASE, ApacheBookie, Cluster
from tests.interop.driver import DUPLICATE_ENTRY, ILLEGAL_OPERATION, LEDGER_EXISTS, OLDEST, TIMEOUT, JavaError, SeenEntry
from tests.interop.scenes import JAVA, LIMIT_S, PLAYERS, SEED, SIZE, WE, WIRES, append_all, bookie_of, expected, read_by_us, seen, value
from tests.interop.sides import OurSide
from tests.interop.stand import CLUSTERS, Stand, java_settings, our_settings
from tests.waiting import wait_until
from triplicate import LedgerState
from triplicate.errors import DuplicateEntry, LedgerExists, NoSuchEntry, RequestTimeout

COUNT = 30
LAST = COUNT - 1
INTERVAL_S = 0.1
everywhere = pytest.mark.parametrize("bookies", CLUSTERS)
over_both = pytest.mark.parametrize("wire", WIRES)
by_either = pytest.mark.parametrize("player", PLAYERS)
chosen_ids = itertools.count(5_000_000_000)
"""First ledger id: beyond those generated in these tests, and in the long form of paths."""


def shuffled() -> list[int]:
    ids = list(range(COUNT))
    random.Random(SEED).shuffle(ids)
    return ids


def everybody(cluster: Cluster) -> dict[str, Any]:
    """Quorums of all bookies: every bookie holds an entry before it is acknowledged, so all bookies give the same answers."""
    return dict.fromkeys(("ensemble_size", "write_quorum", "ack_quorum"), cluster.ensemble_size)


class Adv:
    """A ledger with ids chosen by the caller, written by either client; appends do not wait."""

    def __init__(self, stand: Stand, cluster: Cluster, player: str, wire: str, release: str, ledger_id: int | None = None) -> None:
        self._stand = stand
        sizes: dict[str, Any] = {"ensemble_size": cluster.ensemble_size}
        self._ours: Any = None
        self._javas: Any = None
        if player == JAVA:
            self._javas = stand.java_client(release, cluster, wire).create(**sizes, adv=True, ledger_id=ledger_id)
            self.ledger_id: int = self._javas.ledger_id
        else:
            self._ours = stand.run(stand.our_client(cluster, wire).create_adv(**sizes, ledger_id=ledger_id))
            self.ledger_id = self._ours.ledger_id

    def append(self, entry_id: int, what: bytes) -> Future[Any]:
        if self._javas is not None:
            later: Future[Any] = self._javas.append_later(what, entry_id)
            return later
        return self._stand.loop.start(lambda: self._ours.append_nowait(entry_id, what))

    def last_add_confirmed(self) -> int:
        known: int = self._ours.last_add_confirmed if self._ours is not None else self._javas.state().last_add_confirmed
        return known

    def close(self) -> None:
        if self._javas is not None:
            self._javas.close()
        else:
            self._stand.run(self._ours.close())


def by_the_other(stand: Stand, cluster: Cluster, player: str, wire: str, release: str, ledger_id: int, last: int) -> list[SeenEntry]:
    """All entries, read by the other client."""
    if player == JAVA:
        return read_by_us(stand, stand.our_client(cluster, wire), ledger_id, last)
    reading = stand.java_client(release, cluster, wire).open(ledger_id)
    found = reading.read(0, last)
    reading.close()
    return found


@by_either
@over_both
@everywhere
def test_chosen_entry_ids_may_come_in_any_order(stand: Stand, bookies: str, wire: str, player: str, java_release: str) -> None:
    cluster = stand.cluster(bookies)
    ledger = Adv(stand, cluster, player, wire, java_release)
    ids = shuffled()
    ids.remove(7)
    appending = {entry_id: ledger.append(entry_id, value(entry_id)) for entry_id in ids}
    for entry_id in range(7):
        appending[entry_id].result(LIMIT_S)
    # Entry 7 holds back all later ones.
    assert ledger.last_add_confirmed() == 6
    assert not any(appending[entry_id].done() for entry_id in range(8, COUNT))
    for taken in (3, 20):
        if player == WE:
            with pytest.raises(DuplicateEntry):
                ledger.append(taken, b"again").result(LIMIT_S)
        else:
            with pytest.raises(JavaError) as refused:
                ledger.append(taken, b"again").result(LIMIT_S)
            assert refused.value.code == DUPLICATE_ENTRY
    ledger.append(7, value(7)).result(LIMIT_S)
    for future in appending.values():
        future.result(LIMIT_S)
    assert ledger.last_add_confirmed() == LAST
    ledger.close()
    found = by_the_other(stand, cluster, player, wire, java_release, ledger.ledger_id, LAST)
    assert [(entry.entry_id, entry.payload) for entry in found] == [(entry_id, value(entry_id)) for entry_id in range(COUNT)]
    # Lengths grow in the order of appending; the greatest is the ledger's.
    assert max(entry.length for entry in found) == COUNT * SIZE
    assert stand.java_client(java_release, cluster, wire).metadata_of(ledger.ledger_id).length == COUNT * SIZE


@by_either
@everywhere
def test_the_caller_chooses_a_ledgers_id(stand: Stand, bookies: str, player: str, java_release: str) -> None:
    cluster = stand.cluster(bookies)
    wanted = next(chosen_ids)
    ledger = Adv(stand, cluster, player, "v3", java_release, ledger_id=wanted)
    assert ledger.ledger_id == wanted
    ledger.append(0, value(0)).result(LIMIT_S)
    ledger.close()
    assert by_the_other(stand, cluster, player, "v3", java_release, wanted, 0) == expected(0, 0)
    with pytest.raises(LedgerExists):
        Adv(stand, cluster, WE, "v3", java_release, ledger_id=wanted)
    with pytest.raises(JavaError) as refused:
        Adv(stand, cluster, JAVA, "v3", java_release, ledger_id=wanted)
    assert refused.value.code == LEDGER_EXISTS
    # Release 4.14 omits long ids from its lists.
    assert (wanted in stand.java_client(java_release, cluster, "v3").ledger_ids()) == (java_release != OLDEST)
    assert wanted in OurSide(stand, cluster, "v2").ledger_ids()


@over_both
@everywhere
def test_our_force_confirms_entries_with_deferred_sync(stand: Stand, bookies: str, wire: str, java_release: str) -> None:
    """Our client uses version 3 for it, also if its other requests use version 2."""
    cluster = stand.cluster(bookies)
    writer = stand.run(stand.our_client(cluster, wire).create(ensemble_size=cluster.ensemble_size, deferred_sync=True))
    assert stand.run(append_all(writer, 0, COUNT)) == list(range(COUNT))
    assert writer.last_add_confirmed == -1
    assert stand.run(writer.force()) == LAST
    assert writer.last_add_confirmed == LAST
    # Closing a ledger drops its unforced entries.
    assert stand.run(append_all(writer, COUNT, 5)) == list(range(COUNT, COUNT + 5))
    assert stand.run(writer.close()) == LAST
    reading = stand.java_client(java_release, cluster, wire).open(writer.ledger_id)
    assert (reading.state().closed, reading.state().last_add_confirmed) == (True, LAST)
    assert reading.read(0, LAST) == expected(0, LAST)
    reading.close()


@everywhere
def test_javas_force_confirms_entries_with_deferred_sync(stand: Stand, bookies: str, java_release: str) -> None:
    cluster = stand.cluster(bookies)
    ledger = stand.java_client(java_release, cluster, "v3").create(ensemble_size=cluster.ensemble_size, deferred_sync=True)
    assert ledger.append_many(COUNT, size=SIZE, seed=SEED).acknowledged() == list(range(COUNT))
    assert ledger.state().last_add_confirmed == -1
    assert ledger.force().last_add_confirmed == LAST
    ledger.append_many(5, first=COUNT, size=SIZE, seed=SEED).acknowledged()
    ledger.close()
    assert read_by_us(stand, stand.our_client(cluster, "v2"), ledger.ledger_id, LAST) == expected(0, LAST)
    facts = stand.run(stand.our_client(cluster, "v2").metadata_of(ledger.ledger_id))
    assert (facts.state, facts.last_entry_id) == (LedgerState.CLOSED, LAST)


@by_either
@everywhere
def test_force_of_an_adv_ledger_with_deferred_sync(stand: Stand, bookies: str, player: str, java_release: str) -> None:
    cluster = stand.cluster(bookies)
    if player == JAVA:
        ledger = stand.java_client(java_release, cluster, "v3").create(
            ensemble_size=cluster.ensemble_size, adv=True, ledger_id=next(chosen_ids), deferred_sync=True
        )
        ledger_id = ledger.ledger_id
        for future in [ledger.append_later(value(entry_id), entry_id) for entry_id in shuffled()]:
            future.result(LIMIT_S)
        assert ledger.state().last_add_confirmed == -1
        assert ledger.force().last_add_confirmed == LAST
        ledger.close()
    else:
        writer = stand.run(stand.our_client(cluster, "v3").create_adv(ensemble_size=cluster.ensemble_size, deferred_sync=True))
        ledger_id = writer.ledger_id

        async def append() -> None:
            await asyncio.gather(*(writer.append(entry_id, value(entry_id)) for entry_id in shuffled()))

        stand.run(append())
        assert writer.last_add_confirmed == -1
        assert stand.run(writer.force()) == LAST
        stand.run(writer.close())
    found = by_the_other(stand, cluster, player, "v3", java_release, ledger_id, LAST)
    assert [entry.payload for entry in found] == [value(entry_id) for entry_id in range(COUNT)]


@everywhere
def test_version_2_of_java_refuses_deferred_sync(stand: Stand, bookies: str, java_release: str) -> None:
    """That version has no field for it; Java's client refuses before it sends a request."""
    cluster = stand.cluster(bookies)
    java = stand.java_client(java_release, cluster, "v2")
    ledger = java.create(ensemble_size=cluster.ensemble_size, deferred_sync=True)
    errors = ledger.append_many(1, size=SIZE, seed=SEED).errors
    assert [error.code for error in errors if error is not None] == [ILLEGAL_OPERATION]
    plain = java.create(ensemble_size=cluster.ensemble_size)
    plain.append_many(1, size=SIZE, seed=SEED).acknowledged()
    with pytest.raises(JavaError) as refused:
        plain.force()
    assert refused.value.code == ILLEGAL_OPERATION


@by_either
@over_both
@everywhere
def test_entries_are_read_before_they_are_confirmed(stand: Stand, bookies: str, wire: str, player: str, java_release: str) -> None:
    """`player` reads every entry of the other client, although the last one is not confirmed to the reader."""
    cluster = stand.cluster(bookies)
    ours, java = stand.our_client(cluster, wire), stand.java_client(java_release, cluster, wire)
    if player == WE:
        ledger = java.create(ensemble_size=cluster.ensemble_size)
        for index in range(5):
            ledger.append(value(index))
        reader = stand.run(ours.open(ledger.ledger_id))
        assert reader.last_add_confirmed == 3
        assert seen(stand.run(reader.read_unconfirmed(0, 4))) == expected(0, 4)
        with pytest.raises(NoSuchEntry):
            stand.run(reader.read(0, 4))
        with pytest.raises(NoSuchEntry):
            stand.run(reader.read_unconfirmed(4, 5))
        ledger.close()
        assert seen(stand.run(reader.read(0, 4))) == expected(0, 4)
    else:
        writer = stand.run(ours.create(ensemble_size=cluster.ensemble_size))
        for index in range(5):
            stand.run(writer.append(value(index)))
        reading = java.open(writer.ledger_id)
        assert reading.state().last_add_confirmed == 3
        assert reading.read_unconfirmed(0, 4) == expected(0, 4)
        with pytest.raises(JavaError):
            reading.read(0, 4)
        with pytest.raises(JavaError):
            reading.read_unconfirmed(4, 5)
        stand.run(writer.close())
        wait_until(lambda: reading.state().closed, LIMIT_S, "Java sees the end")
        assert reading.read(0, 4) == expected(0, 4)


@over_both
@everywhere
def test_our_client_reads_the_lac_of_javas_ledger(stand: Stand, bookies: str, wire: str, java_release: str) -> None:
    cluster = stand.cluster(bookies)
    settings = java_settings(explicitLacInterval=int(INTERVAL_S * 1000))
    telling = stand.driver(java_release).connect(cluster.uri, wire="v3", settings=settings)
    silent = stand.java_client(java_release, cluster, "v3")
    ours = stand.our_client(cluster, wire)
    for client, known in ((silent, 3), (telling, 4)):
        ledger = client.create(**everybody(cluster))
        reader = stand.run(ours.open(ledger.ledger_id))
        assert (stand.run(reader.read_last_confirmed()), stand.run(reader.read_explicit_last_confirmed())) == (-1, None)
        for index in range(5):
            ledger.append(value(index))
        assert stand.run(reader.try_last_confirmed()) == 3
        if client is telling:

            def explicit_is_known(reader: Any = reader) -> bool:
                return bool(stand.run(reader.read_explicit_last_confirmed()) == 4)

            wait_until(explicit_is_known, LIMIT_S, "bookies answer the explicit last-add-confirmed")
        else:
            assert stand.run(reader.read_explicit_last_confirmed()) is None
        assert stand.run(reader.read_last_confirmed()) == known
        ledger.close()
    telling.close()


@over_both
@everywhere
def test_java_reads_the_lac_of_our_ledger(stand: Stand, bookies: str, wire: str, java_release: str) -> None:
    """Over version 2 the plain read does not return explicit ones."""
    cluster = stand.cluster(bookies)
    telling = stand.new_client(cluster, our_settings(wire, explicit_lac_interval_s=INTERVAL_S))
    silent = stand.our_client(cluster, wire)
    for client, known in ((silent, 3), (telling, 4)):
        writer = stand.run(client.create(**everybody(cluster)))
        for index in range(5):
            stand.run(writer.append(value(index)))
        if client is telling:
            reader = stand.run(silent.open(writer.ledger_id))
            assert seen([stand.run(reader.wait_for_entry(4, LIMIT_S))]) == expected(4, 4)
        reading = stand.java_client(java_release, cluster, wire).open(writer.ledger_id)
        assert reading.read_last_confirmed("try") == 3 if client is silent else reading.read_last_confirmed("try") >= 3
        assert reading.read_last_confirmed("quorum") == (known if wire == "v3" else 3)
        if wire == "v3":
            assert reading.read_last_confirmed("explicit") == known
        stand.run(writer.close())
        reading.close()
    stand.run(telling.aclose())


@by_either
@everywhere
def test_bookies_list_their_entries(stand: Stand, bookies: str, player: str, java_release: str) -> None:
    """The ledger is striped: it has more bookies than copies of an entry. One client writes, the other queries every bookie.

    Apache's DbLedgerStorage cannot list entries, and does not answer such a request.
    """
    cluster = stand.cluster(bookies)
    sizes: dict[str, Any] = {"ensemble_size": cluster.ensemble_size, "write_quorum": 2, "ack_quorum": 2}
    ours = stand.new_client(cluster, our_settings("v2", read_timeout_s=1.0))
    java = stand.driver(java_release).connect(cluster.uri, wire="v3", settings=java_settings(readEntryTimeoutSec=1))
    if player == WE:
        ledger = java.create(**sizes)
        ledger_id = ledger.ledger_id
        ledger.append_many(COUNT, size=SIZE, seed=SEED).acknowledged()
        ledger.close()
    else:
        writer = stand.run(ours.create(**sizes))
        ledger_id = writer.ledger_id
        stand.run(append_all(writer, 0, COUNT))
        stand.run(writer.close())
    ensemble = stand.run(ours.metadata_of(ledger_id)).segments[0].ensemble
    size = len(ensemble)
    reader = stand.run(ours.open(ledger_id))
    for place, bookie_id in enumerate(ensemble):
        held = [entry_id for entry_id in range(COUNT) if (place - entry_id) % size < 2]
        bookie = bookie_of(cluster, bookie_id)
        if isinstance(bookie, ApacheBookie) and bookie.storage == DATABASE:
            with pytest.raises(RequestTimeout if player == WE else JavaError) as silent:
                stand.run(reader.entries_on(bookie_id)) if player == WE else java.entries_on(bookie_id, ledger_id, COUNT)
            assert getattr(silent.value, "code", TIMEOUT) == TIMEOUT
        elif player == WE:
            found = stand.run(reader.entries_on(bookie_id))
            assert (found.count, [entry_id for entry_id in range(COUNT + 5) if entry_id in found]) == (len(held), held)
        else:
            assert java.entries_on(bookie_id, ledger_id, COUNT + 5) == (len(held), held)
    stand.run(ours.aclose())
    java.close()


@everywhere
def test_bookies_report_their_free_space(stand: Stand, bookies: str, java_release: str) -> None:
    cluster = stand.cluster(bookies)
    told = stand.java_client(java_release, cluster, "v3").bookie_info()
    assert sorted(told) == sorted(bookie.bookie_id for bookie in cluster.bookies)
    for bookie_id, (total, free) in told.items():
        ours = stand.run(stand.our_client(cluster, "v2").bookie_info(bookie_id))
        assert ours.total_bytes == total > free > 0
        # Other processes use the disk meanwhile.
        assert abs(ours.free_bytes - free) < total // 10
