"""A bookie is killed under load: either client replaces it without loss, and the other client reads every entry."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.interop.bookies import ApacheBookie, BookieProcess, Cluster, OurBookie
from tests.interop.driver import JavaLedger
from tests.interop.scenes import JAVA, LIMIT_S, PLAYERS, SEED, SIZE, WIRES, append_all, expected, later, read_by_us, restart, value
from tests.interop.stand import Stand, our_settings
from tests.waiting import wait_until
from triplicate import Client, LedgerWriter

ENSEMBLE = 3
LOAD = 6_000
KILLED_AFTER = 200
"""Entries that are confirmed when the bookie is killed."""
AFTERWARDS = 10
KINDS: dict[str, type[BookieProcess]] = {"ours": OurBookie, "apache": ApacheBookie}
PLACES = (("ours", "ours"), ("apache", "apache"), ("mixed", "ours"), ("mixed", "apache"))
"""Cluster, and the implementation of the killed bookie."""


@pytest.fixture(scope="module")
def spares(stand: Stand) -> Iterator[Callable[[str], Cluster]]:
    """Clusters of four bookies. A bookie that was added for that is removed at the end."""
    added: dict[str, BookieProcess] = {}

    def cluster_with_spare(name: str) -> Cluster:
        cluster = stand.cluster(name)
        if len(cluster.bookies) == ENSEMBLE:
            added[name] = stand.add_bookie(cluster, name)
        return cluster

    yield cluster_with_spare
    for name, bookie in added.items():
        stand.remove_bookie(stand.cluster(name), bookie)


class Load:
    """A ledger written over one wire by one of the clients."""

    def __init__(self, stand: Stand, cluster: Cluster, client: Client, player: str, wire: str, release: str) -> None:
        self._stand = stand
        self._ours: LedgerWriter | None = None
        self._javas: JavaLedger | None = None
        if player == JAVA:
            self._javas = stand.java_client(release, cluster, wire).create(ensemble_size=ENSEMBLE)
            self.ledger_id = self._javas.ledger_id
        else:
            self._ours = stand.run(client.create(ensemble_size=ENSEMBLE))
            self.ledger_id = self._ours.ledger_id

    def append(self, first: int, count: int) -> list[int]:
        """Ids, in order; the first failure is raised."""
        if self._javas is not None:
            return self._javas.append_many(count, first=first, size=SIZE, seed=SEED).acknowledged()
        assert self._ours is not None
        outcomes = self._stand.run(append_all(self._ours, first, count))
        for outcome in outcomes:
            if not isinstance(outcome, int):
                raise outcome
        return [outcome for outcome in outcomes if isinstance(outcome, int)]

    def confirmed(self) -> int:
        if self._javas is not None:
            return self._javas.state().last_add_confirmed
        assert self._ours is not None
        return self._ours.last_add_confirmed

    def close(self) -> None:
        if self._javas is not None:
            self._javas.close()
        elif self._ours is not None:
            self._stand.run(self._ours.close())


@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.parametrize(("bookies", "killed"), PLACES, ids=[f"{bookies}-kills-{killed}" for bookies, killed in PLACES])
def test_a_killed_bookie_is_replaced_without_loss(
    stand: Stand, spares: Callable[[str], Cluster], bookies: str, killed: str, player: str, java_release: str
) -> None:
    """Writers over both wires at once share one killed bookie."""
    cluster = spares(bookies)
    victim = next(bookie for bookie in cluster.bookies if isinstance(bookie, KINDS[killed]))
    loads = [load_on(stand, cluster, victim, player, wire, java_release) for wire in WIRES]
    running = [later(partial(load.append, 0, LOAD)) for load in loads]
    wait_until(lambda: min(load.confirmed() for load in loads) >= KILLED_AFTER, LIMIT_S, "the loads run")
    victim.kill()
    try:
        for load, appending in zip(loads, running, strict=True):
            assert appending.result(LIMIT_S) == list(range(LOAD))
            last = appended_until_replaced(stand, cluster, victim, load)
            load.close()
            check(stand, cluster, victim, player, load.ledger_id, last, java_release)
    finally:
        restart(stand, cluster, victim)


def load_on(stand: Stand, cluster: Cluster, victim: BookieProcess, player: str, wire: str, release: str) -> Load:
    """A load whose ensemble contains the bookie that will be killed."""
    # A new client: one that saw the bookie fail would exclude it from ensembles for a while.
    client = stand.new_client(cluster, our_settings(wire))
    for _ in range(50):
        load = Load(stand, cluster, client, player, wire, release)
        metadata = stand.run(stand.our_client(cluster, "v2").metadata_of(load.ledger_id))
        if victim.bookie_id in metadata.segments[0].ensemble:
            return load
        load.close()
    raise AssertionError(f"no ledger of fifty lies on {victim.bookie_id}")


def appended_until_replaced(stand: Stand, cluster: Cluster, victim: BookieProcess, load: Load) -> int:
    """Append until the bookie is replaced; return the last entry id.

    The writer may notice the death only at an append, since the other bookies are an ack quorum.
    """
    client = stand.our_client(cluster, "v2")
    deadline = time.monotonic() + LIMIT_S
    count = LOAD
    while victim.bookie_id in stand.run(client.metadata_of(load.ledger_id)).last_segment.ensemble:
        assert time.monotonic() < deadline, f"{victim.name} is not replaced"
        assert load.append(count, AFTERWARDS) == list(range(count, count + AFTERWARDS))
        count += AFTERWARDS
    return count - 1


def check(stand: Stand, cluster: Cluster, victim: BookieProcess, player: str, ledger_id: int, last: int, release: str) -> None:
    """Check the ledger while the bookie is still down."""
    java = stand.java_client(release, cluster, "v3")
    facts = java.metadata_of(ledger_id)
    *_, before, newest = sorted(facts.segments)
    assert victim.bookie_id in facts.segments[before]
    assert victim.bookie_id not in facts.segments[newest]
    assert newest > 0
    # The other bookies keep their positions.
    kept = [old == new for old, new in zip(facts.segments[before], facts.segments[newest], strict=True)]
    assert sum(kept) == ENSEMBLE - 1
    if player == JAVA:
        assert read_by_us(stand, stand.our_client(cluster, "v3"), ledger_id, last) == expected(0, last)
    else:
        reading = java.open(ledger_id)
        assert reading.read(0, last) == expected(0, last)
        reading.close()


@pytest.mark.parametrize("player", PLAYERS)
def test_without_a_spare_bookie_the_writer_fails_with_an_error(stand: Stand, player: str, java_release: str) -> None:
    """All bookies are in the ensemble. Entries acknowledged before the failure are readable afterwards."""
    cluster = stand.cluster("mixed")
    victim = cluster.bookies[0]
    ensemble_size = len(cluster.bookies)
    if player == JAVA:
        ledger = stand.java_client(java_release, cluster, "v3").create(ensemble_size=ensemble_size, ack_quorum=3)
        ledger_id = ledger.ledger_id
        ledger.append_many(AFTERWARDS, size=SIZE, seed=SEED).acknowledged()
    else:
        writer = stand.run(stand.our_client(cluster, "v3").create(ensemble_size=ensemble_size, ack_quorum=3))
        ledger_id = writer.ledger_id
        stand.run(append_all(writer, 0, AFTERWARDS))
    victim.kill()
    try:
        if player == JAVA:
            errors = [error for error in ledger.append_many(4, first=AFTERWARDS, size=SIZE, seed=SEED).errors if error is not None]
            assert "NotEnoughBookies" in errors[0].name
        else:
            outcomes = stand.run(append_all(writer, AFTERWARDS, 4))
            assert "bookies" in str(next(outcome for outcome in outcomes if not isinstance(outcome, int)))
    finally:
        restart(stand, cluster, victim)
    reader = stand.run(stand.our_client(cluster, "v3").recover(ledger_id))
    last = reader.last_add_confirmed
    assert last >= AFTERWARDS - 1
    reading = stand.java_client(java_release, cluster, "v3").open(ledger_id, recovery=True)
    assert reading.state().last_add_confirmed == last
    assert [entry.payload for entry in reading.read(0, last)] == [value(index) for index in range(last + 1)]
    reading.close()
