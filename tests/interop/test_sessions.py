"""ZooKeeper sessions expire, and ZooKeeper is killed and restarted: open ledgers continue, and clients and bookies reconnect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kazoo.client import KazooClient

from tests.interop.bookies import ApacheBookie, BookieProcess, Cluster, OurBookie, initialise_with_apache, initialise_with_ours
from tests.interop.scenes import LIMIT_S, SEED, SIZE, append_all, expected, follow, later, read_by_us, value
from tests.interop.stand import Stand, java_settings, our_settings
from tests.waiting import wait_until
from triplicate import Client, LedgerWriter

COUNT = 20
KINDS: dict[str, type[BookieProcess]] = {"ours": OurBookie, "apache": ApacheBookie}
SESSION_LIMIT_S = 20.0
"""The longest session that the server grants lasts ten seconds."""
kinds = pytest.mark.parametrize("kind", KINDS)


def append(stand: Stand, writer: LedgerWriter, first: int, count: int) -> None:
    assert stand.run(append_all(writer, first, count)) == list(range(first, first + count))


def expire(stand: Stand, client: Client) -> None:
    """Expire a session as the server would: another client joins it by id and password, and closes it."""
    tree: Any = client.metadata.tree
    session = tree._tree._session._client.client_id
    other = KazooClient(hosts=stand.zookeeper.address, client_id=session)
    other.start(timeout=10)
    other.stop()
    other.close()


def test_our_client_continues_after_its_session_expired(stand: Stand, java_release: str) -> None:
    cluster = stand.cluster("mixed")
    client = stand.new_client(cluster, our_settings("v2"))
    session = client.metadata.tree.session_id
    writer = stand.run(client.create(ensemble_size=cluster.ensemble_size))
    append(stand, writer, 0, COUNT)
    java = stand.java_client(java_release, cluster, "v3")
    javas = java.create(ensemble_size=cluster.ensemble_size)
    javas.append_many(COUNT, size=SIZE, seed=SEED).acknowledged()
    reader = stand.run(client.open(javas.ledger_id))
    got: list[Any] = []
    following = later(lambda: stand.run(follow(reader, got)))
    expire(stand, client)
    # Open ledgers need no session.
    append(stand, writer, COUNT, COUNT)
    # A watch lost with the session is set again: the reader sees the end of the other client's ledger.
    javas.append_many(COUNT, first=COUNT, size=SIZE, seed=SEED).acknowledged()
    javas.close()
    following.result(LIMIT_S)
    assert got == expected(0, 2 * COUNT - 1)
    assert stand.run(writer.close()) == 2 * COUNT - 1
    another = stand.run(client.create(ensemble_size=cluster.ensemble_size))
    append(stand, another, 0, 1)
    stand.run(another.close())
    assert client.metadata.tree.session_id != session
    reading = java.open(another.ledger_id)
    assert reading.read(0, 0) == expected(0, 0)
    reading.close()
    stand.run(client.aclose())


def test_javas_client_continues_after_its_session_expired(stand: Stand, java_release: str) -> None:
    """On our bookies as on Apache's."""
    cluster = stand.cluster("mixed")
    java = stand.driver(java_release).connect(cluster.uri, wire="v3", settings=java_settings())
    ledger = java.create(ensemble_size=cluster.ensemble_size)
    ledger.append_many(COUNT, size=SIZE, seed=SEED).acknowledged()
    writer = stand.run(stand.our_client(cluster, "v2").create(ensemble_size=cluster.ensemble_size))
    append(stand, writer, 0, COUNT)
    reading = java.open(writer.ledger_id)
    java.expire_session(cluster.servers)
    ledger.append_many(COUNT, first=COUNT, size=SIZE, seed=SEED).acknowledged()
    ledger.close()
    assert read_by_us(stand, stand.our_client(cluster, "v2"), ledger.ledger_id, 2 * COUNT - 1) == expected(0, 2 * COUNT - 1)
    append(stand, writer, COUNT, COUNT)
    stand.run(writer.close())
    wait_until(lambda: reading.state().closed, LIMIT_S, "Java sees the end of our ledger")
    assert reading.read(0, 2 * COUNT - 1) == expected(0, 2 * COUNT - 1)
    another = java.create(ensemble_size=cluster.ensemble_size)
    another.append_many(1, size=SIZE, seed=SEED).acknowledged()
    another.close()
    java.close()


@kinds
def test_a_bookie_registers_again_after_its_session_expired(stand: Stand, kind: str, java_release: str) -> None:
    """The bookie is stopped for longer than its session while a ledger is written on it."""
    cluster = stand.cluster("mixed")
    victim = next(bookie for bookie in cluster.bookies if isinstance(bookie, KINDS[kind]))
    client = stand.our_client(cluster, "v2")
    writer = stand.run(client.create(ensemble_size=cluster.ensemble_size))
    append(stand, writer, 0, COUNT)
    victim.pause()
    try:
        # The other bookies are an ack quorum.
        append(stand, writer, COUNT, COUNT)
        wait_until(lambda: victim.bookie_id not in writable(stand, client), SESSION_LIMIT_S, f"{victim.name} is away")
    finally:
        victim.resume()
    stand.wait_writable(cluster)
    assert victim.process is not None
    assert victim.process.poll() is None
    # New ledgers of either client, which lie on all bookies, use it again.
    java = stand.java_client(java_release, cluster, "v3")
    ledger = java.create(ensemble_size=cluster.ensemble_size, write_quorum=cluster.ensemble_size, ack_quorum=cluster.ensemble_size)
    ledger.append_many(COUNT, size=SIZE, seed=SEED).acknowledged()
    ledger.close()
    assert read_by_us(stand, client, ledger.ledger_id, COUNT - 1) == expected(0, COUNT - 1)
    recovered = java.open(writer.ledger_id, recovery=True)
    assert recovered.read(0, 2 * COUNT - 1) == expected(0, 2 * COUNT - 1)
    recovered.close()

    async def leave() -> None:
        writer.abandon()

    stand.run(leave())


def writable(stand: Stand, client: Client) -> list[str]:
    return list(stand.run(client.metadata.bookies.writable()))


def test_appends_continue_while_zookeeper_restarts(stand: Stand, java_release: str) -> None:
    """ZooKeeper is killed and restarted on its data. A concurrent create of a ledger waits, and succeeds."""
    cluster = stand.cluster("mixed")
    client = stand.our_client(cluster, "v2")
    java = stand.java_client(java_release, cluster, "v3")
    writer = stand.run(client.create(ensemble_size=cluster.ensemble_size))
    ledger = java.create(ensemble_size=cluster.ensemble_size)
    append(stand, writer, 0, COUNT)
    ledger.append_many(COUNT, size=SIZE, seed=SEED).acknowledged()
    stand.zookeeper.kill()
    try:
        creating = later(lambda: stand.run(client.create(ensemble_size=cluster.ensemble_size)))
        for first in range(COUNT, 5 * COUNT, COUNT):
            append(stand, writer, first, COUNT)
            ledger.append_many(COUNT, first=first, size=SIZE, seed=SEED).acknowledged()
        assert not creating.done()
    finally:
        stand.zookeeper.start()
    another = creating.result(LIMIT_S)
    append(stand, another, 0, COUNT)
    append(stand, writer, 5 * COUNT, COUNT)
    ledger.append_many(COUNT, first=5 * COUNT, size=SIZE, seed=SEED).acknowledged()
    stand.run(another.close())
    stand.run(writer.close())
    stand.wait_writable(cluster)
    ledger.close()
    last = 6 * COUNT - 1
    assert read_by_us(stand, client, ledger.ledger_id, last) == expected(0, last)
    reading = java.open(writer.ledger_id)
    assert reading.read(0, last) == expected(0, last)
    reading.close()


@kinds
def test_a_bookie_of_another_cluster_is_refused(stand: Stand, kind: str) -> None:
    """Its directories have the instance id of its own cluster. The bookie reports that, and does not start."""
    cluster = stand.cluster("mixed")
    elsewhere = f"elsewhere-{kind}"
    stand.make_root(elsewhere)
    initialise: Callable[[], None] = {
        "ours": lambda: initialise_with_ours(stand.uri(elsewhere)),
        "apache": lambda: initialise_with_apache(stand.uri(elsewhere), stand.new_folder()),
    }[kind]
    initialise()
    bookie = a_bookie(kind, cluster, stand)
    cluster.bookies.append(bookie)
    try:
        bookie.start()
        stand.wait_writable(cluster)
        bookie.stop()
        stand.wait_writable(cluster)
    finally:
        cluster.bookies.remove(bookie)
        bookie.kill()
    home, bookie.uri = bookie.uri, stand.uri(elsewhere)
    with pytest.raises(AssertionError, match="does not start") as refused:
        bookie.start()
    assert ("cluster" if kind == "ours" else "InvalidCookieException") in str(refused.value)
    # In its own cluster it starts.
    bookie.uri = home
    bookie.start()
    bookie.stop()
    stand.wait_writable(cluster)


def a_bookie(kind: str, cluster: Cluster, stand: Stand) -> BookieProcess:
    return KINDS[kind](f"stranger-{kind}", cluster.uri, stand.new_folder())


def test_entries_are_unchanged_at_the_end(stand: Stand) -> None:
    """After all these tests the clusters still hold their entries."""
    cluster = stand.cluster("mixed")
    writer = stand.run(stand.our_client(cluster, "v3").create(ensemble_size=4, write_quorum=4, ack_quorum=4))
    assert stand.run(writer.append(value(0))) == 0
    stand.run(writer.close())
