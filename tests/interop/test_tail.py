"""One client writes, the other follows by long polls or by plain polling, with and without explicit last-add-confirmed.

Without it the last entry is confirmed to readers by the next entry, or by the end of the ledger.
"""

from __future__ import annotations

import time

import pytest

from tests.interop.driver import JavaLedger, SeenEntry, entries_from
from tests.interop.scenes import LIMIT_S, SEED, SIZE, WIRES, expected, follow, later, seen, value
from tests.interop.stand import CLUSTERS, Stand, java_settings, our_settings
from tests.waiting import wait_until

COUNT = 20
LAST = COUNT - 1
INTERVAL_S = 0.1
POLL_S = 2.0
explicit_or_not = pytest.mark.parametrize("explicit", [True, False], ids=["explicit-lac", "no-explicit-lac"])


@explicit_or_not
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("bookies", CLUSTERS)
def test_our_reader_follows_javas_writer(stand: Stand, bookies: str, wire: str, explicit: bool, java_release: str) -> None:
    cluster = stand.cluster(bookies)
    interval_ms = int(INTERVAL_S * 1000) if explicit else 0
    writing = stand.driver(java_release).connect(cluster.uri, wire="v3", settings=java_settings(explicitLacInterval=interval_ms))
    ledger = writing.create(ensemble_size=cluster.ensemble_size)
    reader = stand.run(stand.our_client(cluster, wire).open(ledger.ledger_id))
    got: list[SeenEntry | None] = []
    following = later(lambda: stand.run(follow(reader, got)))
    ledger.append_many(10, size=SIZE, seed=SEED).acknowledged()
    for index in range(10, COUNT):
        assert ledger.append(value(index)) == index
    known = LAST if explicit else LAST - 1
    wait_until(lambda: len(got) > known or following.done(), LIMIT_S, f"entry {known} is seen")
    if not explicit:
        assert stand.run(reader.read_last_confirmed()) == known
    assert not following.done()
    assert got == expected(0, known)
    ledger.close()
    following.result(LIMIT_S)
    assert got == expected(0, LAST)
    assert (reader.is_closed, reader.last_add_confirmed) == (True, LAST)
    stand.run(reader.aclose())
    writing.close()


@explicit_or_not
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("bookies", CLUSTERS)
def test_javas_reader_follows_our_writer(stand: Stand, bookies: str, wire: str, explicit: bool, java_release: str) -> None:
    """Over version 3 it follows by long polls. Version 2 has none: it polls, and does not see explicit last-add-confirmed."""
    cluster = stand.cluster(bookies)
    client = stand.new_client(cluster, our_settings(wire, explicit_lac_interval_s=INTERVAL_S if explicit else 0.0))
    writer = stand.run(client.create(ensemble_size=cluster.ensemble_size))
    known = LAST if explicit and wire == "v3" else LAST - 1
    # A bookie without entries of a ledger answers its long poll at once, and Java's client accepts that answer.
    stand.run(writer.append_many([value(index) for index in range(10)]))
    ledger = stand.java_client(java_release, cluster, wire).open(writer.ledger_id)
    if wire == "v3":
        following = ledger.tail_later(0, known, poll_s=POLL_S)
    for index in range(10, COUNT):
        assert stand.run(writer.append(value(index))) == index
    if wire == "v3":
        assert entries_from(following.result(LIMIT_S)) == expected(0, known)
    else:
        assert asked(ledger, known) == expected(0, known)
        if explicit:
            # The explicit last-add-confirmed is greater by now, but version 2 does not carry it.
            telling = stand.run(stand.our_client(cluster, "v3").open(writer.ledger_id))
            assert seen([stand.run(telling.wait_for_entry(LAST, LIMIT_S))]) == expected(LAST, LAST)
            assert ledger.read_last_confirmed() == known
    if not explicit:
        assert ledger.read_last_confirmed() == known
    stand.run(writer.close())
    wait_until(lambda: ledger.state().closed, LIMIT_S, "Java sees the end")
    assert ledger.read(0, LAST) == expected(0, LAST)
    ledger.close()
    stand.run(client.aclose())


def asked(ledger: JavaLedger, last: int) -> list[SeenEntry]:
    """Read the confirmed entries until `last` is among them."""
    found: list[SeenEntry] = []
    deadline = time.monotonic() + LIMIT_S
    while len(found) <= last:
        assert time.monotonic() < deadline
        known = ledger.read_last_confirmed()
        if known >= len(found):
            found += ledger.read(len(found), known)
    return found


@pytest.mark.parametrize("bookies", CLUSTERS)
def test_our_long_poll_waits_for_javas_entry(stand: Stand, bookies: str, java_release: str) -> None:
    cluster = stand.cluster(bookies)
    ledger = stand.java_client(java_release, cluster, "v3").create(ensemble_size=cluster.ensemble_size)
    assert [ledger.append(value(index)) for index in range(3)] == [0, 1, 2]
    reader = stand.run(stand.our_client(cluster, "v3").open(ledger.ledger_id))
    assert seen([stand.run(reader.wait_for_entry(1, LIMIT_S))]) == expected(1, 1)
    # No result: only the next entry confirms entry 2.
    started = time.monotonic()
    assert stand.run(reader.wait_for_entry(2, 0.5)) is None
    assert time.monotonic() - started > 0.45
    waiting = later(lambda: stand.run(reader.wait_for_entry(2, LIMIT_S)))
    assert not waiting.done()
    started = time.monotonic()
    ledger.append_many(1, first=3, size=SIZE, seed=SEED)
    assert seen([waiting.result(LIMIT_S)]) == expected(2, 2)
    assert time.monotonic() - started < POLL_S
    # No entry can follow once the ledger is closed.
    waiting = later(lambda: stand.run(reader.wait_for_entry(4, LIMIT_S)))
    ledger.close()
    assert waiting.result(LIMIT_S) is None
    assert reader.is_closed
    stand.run(reader.aclose())


@pytest.mark.parametrize("parallel", [False, True], ids=["one-bookie-at-a-time", "all-bookies"])
@pytest.mark.parametrize("bookies", CLUSTERS)
def test_javas_long_poll_waits_for_our_entry(stand: Stand, bookies: str, parallel: bool, java_release: str) -> None:
    cluster = stand.cluster(bookies)
    writer = stand.run(stand.our_client(cluster, "v2").create(ensemble_size=cluster.ensemble_size))
    stand.run(writer.append_many([value(0), value(1), value(2)]))
    ledger = stand.java_client(java_release, cluster, "v3").open(writer.ledger_id)
    stand.run(writer.append(value(3)))
    # No result: only the next entry confirms entry 3.
    started = time.monotonic()
    found = ledger.wait_for_entry(3, 0.5, parallel=parallel)
    assert (found.last_add_confirmed, found.entry) == (2, None)
    assert time.monotonic() - started > 0.45
    waiting = later(lambda: ledger.wait_for_entry(3, POLL_S, parallel=parallel))
    started = time.monotonic()
    stand.run(writer.append(value(4)))
    found = waiting.result(LIMIT_S)
    assert time.monotonic() - started < POLL_S
    # A bookie without the entry answers only that it is confirmed.
    assert found.last_add_confirmed == 3
    assert found.entry in (None, expected(3, 3)[0])
    assert ledger.read(3, 3) == expected(3, 3)
    stand.run(writer.close())
    ledger.close()


@pytest.mark.parametrize("bookies", CLUSTERS)
def test_java_has_no_long_poll_over_version_2(stand: Stand, bookies: str, java_release: str) -> None:
    """The version-2 request has no such field: each bookie answers at once, and Java's client returns no entry."""
    cluster = stand.cluster(bookies)
    writer = stand.run(stand.our_client(cluster, "v2").create(ensemble_size=cluster.ensemble_size))
    stand.run(writer.append_many([value(0), value(1), value(2)]))
    ledger = stand.java_client(java_release, cluster, "v2").open(writer.ledger_id)
    started = time.monotonic()
    found = ledger.wait_for_entry(2, 10.0)
    assert time.monotonic() - started < 5.0
    assert found.entry is None
    stand.run(writer.close())
    ledger.close()
