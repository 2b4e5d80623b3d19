"""The point of a log at which a database is wanted."""

from __future__ import annotations

import pytest

from triplicate.errors import ArgumentError
from triplicate.sql.backup.core.target import (
    AtPosition,
    AtTime,
    AtTransaction,
    Target,
    TargetSearch,
    parse_target,
    parse_time,
    preamble_of_first,
    time_text,
)
from triplicate.sql.core.records import (
    BatchHeader,
    EncodedOperations,
    SchemaChange,
    TableDictionary,
    Transaction,
    TransactionPart,
    decode_header,
    encode_header,
    encode_record,
    encode_transaction,
)

DIGESTS = [bytes([number]) * 16 for number in range(4)]


def record(number: int, *schema: bytes) -> bytes:
    return encode_transaction(Transaction(number, [SchemaChange("create table t(a)", digest) for digest in schema]), TableDictionary())


def header(epoch: int, time_ms: int, before: int = 0, after: int = 0) -> BatchHeader:
    return BatchHeader(b"d" * 16, epoch, 1, before, after, DIGESTS[before], DIGESTS[after], time_ms=time_ms)


BATCHES = (
    (0, header(1, 1000), (record(1), record(3), record(2))),
    (3, header(1, 2000), (record(4),)),
    (4, header(2, 2000), (record(1), record(2))),
    (6, header(2, 5000), (record(4), record(3))),
)


def found(target: Target | None) -> tuple[int, int, bool]:
    """Position, time, and whether the target is missing."""
    search = TargetSearch(target, 0)
    for first_offset, head, records in BATCHES:
        search.take(first_offset, head, records)
        if search.reached:
            break
    return search.position, search.time_ms, search.is_missing


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (None, (8, 5000, False)),
        (AtPosition(0), (0, 0, False)),
        (AtPosition(1), (1, 1000, False)),
        (AtPosition(3), (3, 1000, False)),
        (AtPosition(5), (5, 2000, False)),
        (AtPosition(8), (8, 5000, False)),
        (AtPosition(9), (8, 5000, True)),
        (AtTime(999), (0, 0, False)),
        (AtTime(1000), (3, 1000, False)),
        (AtTime(1999), (3, 1000, False)),
        (AtTime(2000), (6, 2000, False)),
        (AtTime(9000), (8, 5000, False)),
        (AtTransaction(1 << 40 | 3), (2, 1000, False)),
        (AtTransaction(1 << 40 | 2), (3, 1000, False)),
        (AtTransaction(2 << 40 | 1), (5, 2000, False)),
        (AtTransaction(2 << 40 | 4), (7, 5000, False)),
        (AtTransaction(2 << 40 | 9), (8, 5000, True)),
        (AtTransaction(3 << 40 | 1), (8, 5000, True)),
    ],
)
def test_a_target_is_found_between_two_transactions(target: Target | None, expected: tuple[int, int, bool]) -> None:
    assert found(target) == expected


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("position 12", AtPosition(12)),
        (" POSITION '12' ", AtPosition(12)),
        ("transaction 1099511627777", AtTransaction(1 << 40 | 1)),
        ("time 2026-01-31", AtTime(1_769_817_600_000)),
        ("time '2026-01-31 01:00:00.5+01:00'", AtTime(1_769_817_600_500)),
        ("time 2026-01-31T00:00:00Z", AtTime(1_769_817_600_000)),
    ],
)
def test_a_target_is_read_from_words(text: str, target: Target) -> None:
    assert parse_target(text) == target
    assert parse_target(str(target)) == target


@pytest.mark.parametrize("text", ["", "12", "position", "position -1", "position 1.5", "position ²", "time soon", f"transaction {2**63}"])
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(ArgumentError):
        parse_target(text)


def test_a_time_is_shown_as_it_is_read() -> None:
    assert parse_time(time_text(1_769_817_600_123)) == 1_769_817_600_123


def test_the_header_of_a_part_of_a_batch_has_the_schema_behind_that_part() -> None:
    records = (record(1), record(2, DIGESTS[1], DIGESTS[2]), record(3, DIGESTS[3]))
    preamble = encode_header(header(1, 1000, 0, 3))
    for count, version in ((1, 0), (2, 2), (3, 3)):
        cut = decode_header(preamble_of_first(preamble, records[:count]))
        assert (cut.schema_version_after, cut.digest_after) == (version, DIGESTS[version])
        assert cut.time_ms == 1000


def test_a_transaction_in_parts_is_reached_with_its_last_part() -> None:
    search = TargetSearch(AtTransaction((1 << 40) + 5), 0)
    for index in range(3):
        part = encode_record(Transaction(5, part=TransactionPart(index + 1, 3, index)), [EncodedOperations(0, 0, b"")])
        assert search.take(index, header(1, 1000), [part]) == 1
        assert search.reached == (index == 2)
    assert (search.position, search.is_missing) == (3, False)
