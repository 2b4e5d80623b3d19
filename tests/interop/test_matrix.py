"""Every operation by either client, on bookies of either kind and of both, over both wires, with every digest.

The other implementation always reads as well what a client has written. No test depends on another test's ledgers.
"""

from __future__ import annotations

import pytest

from tests.interop import sides
from tests.interop.conftest import Cell
from tests.interop.driver import SeenEntry, payload
from tests.interop.sides import OurSide, Reading, Refused, Side, Writing
from triplicate import DigestType, LedgerState

WRITE_QUORUM = 3
ACK_QUORUM = 2
SEED = 7
SIZE = 200

ODD_VALUES = (b"", b"\x00", b"\xff" * 31, bytes(range(256)), b"x" * 70_000)


def create(cell: Cell, *, custom: dict[str, bytes] | None = None, write_quorum: int = WRITE_QUORUM) -> Writing:
    return cell.side.create(
        ensemble_size=cell.cluster.ensemble_size,
        write_quorum=write_quorum,
        ack_quorum=ACK_QUORUM,
        digest_type=cell.digest_type,
        password=cell.password,
        custom=custom,
    )


def written(cell: Cell, count: int, *, write_quorum: int = WRITE_QUORUM) -> int:
    """The id of a closed ledger with `count` entries of `SIZE` bytes, written by the cell's client."""
    ledger = create(cell, write_quorum=write_quorum)
    if count:
        ledger.append_many(count, first=0, size=SIZE, seed=SEED)
    ledger.close()
    return ledger.ledger_id


def opened(cell: Cell, side: Side, ledger_id: int) -> Reading:
    return side.open(ledger_id, digest_type=cell.digest_type, password=cell.password)


def expected(first: int, last: int) -> list[SeenEntry]:
    return [SeenEntry(entry_id, (entry_id + 1) * SIZE, payload(SEED, entry_id, SIZE)) for entry_id in range(first, last + 1)]


def everybody(cell: Cell) -> tuple[Side, ...]:
    return (cell.side, *cell.others)


def refused(what: str, *also: str) -> pytest.RaisesExc[Refused]:
    return pytest.RaisesExc(Refused, check=lambda error: error.kind in (what, *also))


def test_a_ledger_is_created_and_appended_to_one_by_one(cell: Cell) -> None:
    ledger = create(cell)
    assert [ledger.append(value) for value in ODD_VALUES] == list(range(len(ODD_VALUES)))
    assert ledger.last_add_confirmed() == len(ODD_VALUES) - 1
    ledger.close()
    total = sum(map(len, ODD_VALUES))
    for side in everybody(cell):
        facts = side.metadata_of(ledger.ledger_id)
        assert (facts.ensemble_size, facts.write_quorum, facts.ack_quorum) == (cell.cluster.ensemble_size, WRITE_QUORUM, ACK_QUORUM)
        assert (facts.state, facts.last_entry_id, facts.length) == (LedgerState.CLOSED, len(ODD_VALUES) - 1, total), side.name
        assert (facts.digest_type, facts.password, facts.format_version) == (cell.digest_type, cell.password, 3)
        assert sorted(facts.segments[0]) == sorted(bookie.bookie_id for bookie in cell.cluster.bookies)
        reading = opened(cell, side, ledger.ledger_id)
        assert tuple(entry.payload for entry in reading.read(0, len(ODD_VALUES) - 1)) == ODD_VALUES, side.name
        reading.close()


def test_entries_are_appended_without_waiting(cell: Cell) -> None:
    count = 250
    ledger = create(cell)
    assert ledger.append_many(count, first=0, size=SIZE, seed=SEED) == list(range(count))
    assert ledger.last_add_confirmed() == count - 1
    ledger.close()
    for side in everybody(cell):
        reading = opened(cell, side, ledger.ledger_id)
        assert reading.read(0, count - 1) == expected(0, count - 1), side.name
        reading.close()


def test_entries_are_read_in_ranges(cell: Cell) -> None:
    ledger_id = written(cell, 40)
    for side in everybody(cell):
        reading = opened(cell, side, ledger_id)
        assert reading.last_add_confirmed() == 39
        for first, last in ((0, 0), (39, 39), (7, 23), (0, 39)):
            assert reading.read(first, last) == expected(first, last), side.name
        with refused(sides.NO_ENTRY):
            reading.read(39, 40)
        reading.close()


def test_a_ledger_is_read_while_it_is_written(cell: Cell) -> None:
    ledger = create(cell)
    ledger.append_many(10, first=0, size=SIZE, seed=SEED)
    # An entry is confirmed to readers by a later one that was sent after its acknowledgement.
    ledger.append_many(1, first=10, size=SIZE, seed=SEED)
    for side in everybody(cell):
        reading = opened(cell, side, ledger.ledger_id)
        assert (reading.is_closed(), reading.last_add_confirmed()) == (False, 9), side.name
        assert reading.read(0, 9) == expected(0, 9), side.name
        reading.close()
    # A reader does not disturb the writer.
    assert ledger.append_many(10, first=11, size=SIZE, seed=SEED) == list(range(11, 21))
    ledger.close()


def test_another_password_is_refused(cell: Cell) -> None:
    ledger_id = written(cell, 1)
    for side in everybody(cell):
        with refused(sides.UNAUTHORIZED, sides.DIGEST):
            side.open(ledger_id, digest_type=cell.digest_type, password=b"another")


def test_entries_are_read_in_batches(cell: Cell) -> None:
    """Over version 3, and for releases without batch reads, the same entries are read one by one, or refused."""
    ledger_id = written(cell, 30, write_quorum=cell.cluster.ensemble_size)
    for side in everybody(cell):
        reading = opened(cell, side, ledger_id)
        if side.batch_reads and (cell.wire == "v2" or isinstance(side, OurSide)):
            next_entry = 0
            while next_entry < 30:
                entries = reading.read_batch(next_entry, 12, 1 << 20)
                assert 1 <= len(entries) <= 12, side.name
                assert entries == expected(next_entry, next_entry + len(entries) - 1), side.name
                next_entry += len(entries)
            # Even the smallest limit returns one entry.
            assert reading.read_batch(3, 12, 1)[0] == expected(3, 3)[0], side.name
        else:
            # Read an entry first: BookKeeper's client refuses a batch only when it sends it, which needs a connection.
            assert reading.read(0, 11) == expected(0, 11), side.name
            with refused(sides.NOT_SUPPORTED):
                reading.read_batch(0, 12, 1 << 20)
        reading.close()


def test_a_closed_ledger_stays_closed(cell: Cell) -> None:
    ledger = create(cell)
    ledger.append_many(3, first=0, size=SIZE, seed=SEED)
    ledger.close()
    for side in everybody(cell):
        for recovery in (False, True):
            reading = side.open(ledger.ledger_id, digest_type=cell.digest_type, password=cell.password, recovery=recovery)
            assert (reading.is_closed(), reading.last_add_confirmed()) == (True, 2), side.name
            assert reading.read(0, 2) == expected(0, 2), side.name
            reading.close()


def test_an_empty_ledger_is_closed_and_opened(cell: Cell) -> None:
    ledger_id = written(cell, 0)
    for side in everybody(cell):
        reading = opened(cell, side, ledger_id)
        assert (reading.is_closed(), reading.last_add_confirmed()) == (True, -1), side.name
        with refused(sides.NO_ENTRY):
            reading.read(0, 0)
        reading.close()
        facts = side.metadata_of(ledger_id)
        assert (facts.state, facts.last_entry_id, facts.length) == (LedgerState.CLOSED, -1, 0), side.name


def test_a_deleted_ledger_cannot_be_opened(cell: Cell) -> None:
    ledger_id = written(cell, 2)
    cell.side.delete(ledger_id)
    for side in everybody(cell):
        with refused(sides.NO_LEDGER):
            opened(cell, side, ledger_id)
        assert ledger_id not in side.ledger_ids(), side.name


def test_custom_metadata_is_kept(cell: Cell) -> None:
    custom = {"owner": b"somebody", "empty": b"", "bytes": bytes(range(256)), "schlüssel": "größe".encode()}
    ledger = create(cell, custom=custom)
    for side in everybody(cell):
        facts = side.metadata_of(ledger.ledger_id)
        assert facts.state is LedgerState.OPEN
        assert {name: facts.custom[name] for name in custom} == custom, side.name
    ledger.close()
    for side in everybody(cell):
        assert {name: side.metadata_of(ledger.ledger_id).custom[name] for name in custom} == custom, side.name


def test_ledgers_are_listed(cell: Cell) -> None:
    made = [written(cell, 0) for _ in range(3)]
    assert made == sorted(made)
    for side in everybody(cell):
        assert set(made) <= set(side.ledger_ids()), side.name
    cell.side.delete(made[1])
    for side in everybody(cell):
        listed = side.ledger_ids()
        assert [ledger_id for ledger_id in listed if ledger_id in made] == [made[0], made[2]], side.name


def test_a_writer_forces_its_entries_to_disk(cell: Cell) -> None:
    """Version 2 has no such request: BookKeeper's client refuses; ours uses a second connection of version 3."""
    ledger = create(cell)
    ledger.append_many(3, first=0, size=SIZE, seed=SEED)
    if cell.wire == "v2" and not isinstance(cell.side, OurSide):
        with refused(sides.NOT_SUPPORTED):
            ledger.force()
    else:
        ledger.force()
    assert ledger.last_add_confirmed() == 2
    ledger.close()


def test_all_digests_are_in_the_matrix() -> None:
    assert sorted(digest_type.name for digest_type in DigestType) == ["CRC32", "CRC32C", "DUMMY", "HMAC"]
