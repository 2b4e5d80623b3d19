"""Where a database's log changes the schema, found without reading all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.spark.change_log import PEOPLE, batch_of, inserted
from triplicate.errors import ConfigError, FormatError
from triplicate.log import decode_entry
from triplicate.log.core.compression import Compressor
from triplicate.log.core.payload_encoder import columns_of, encode_columns
from triplicate.spark.change_feed.schema_history import SCAN_RECORDS, SchemaHistory
from triplicate.spark.cluster.arrow import EntryRange
from triplicate.sql import ColumnAdded, SchemaChange
from triplicate.sql.core.records import Operation

ROW: list[Operation] = [inserted(PEOPLE, (1, "Ada", 1.0), rowids=[1])]


def change(number: int) -> SchemaChange:
    return SchemaChange(f"alter table t add column c{number}", bytes(16))


class Log:
    """A log of batches, each a number of transactions; a transaction is a number of schema changes."""

    def __init__(self, batches: Sequence[Sequence[int]]) -> None:
        self.entries: list[EntryRange] = []
        self.expected: list[tuple[int, int]] = []
        self.reads = self.entries_read = 0
        version = offset = 0
        for batch in batches:
            before, transactions = version, []
            for slot, count in enumerate(batch):
                transactions.append(ROW + [change(version + number + 1) for number in range(count)])
                self.expected += [(offset + slot, version + number + 1) for number in range(count)]
                version += count
            self.add(*batch_of(*transactions, schema=before), offset)
            offset += len(batch)
        self.end = offset

    def add(self, preamble: bytes | None, records: list[bytes], offset: int) -> None:
        payload = encode_columns(columns_of(records), Compressor("none"), preamble=preamble).payload(0, 1_000_000)
        self.entries.append(EntryRange(decode_entry(payload), offset, 0, len(records), 1, len(self.entries)))

    def read(self, low: int, high: int) -> Iterator[EntryRange]:
        self.reads += 1
        for entry in self.entries:
            if entry.first_offset < high and entry.first_offset + entry.high > low:
                self.entries_read += 1
                yield entry


@given(st.lists(st.lists(st.sampled_from((0, 0, 0, 0, 1, 2)), min_size=1, max_size=4), min_size=1, max_size=30), st.data())
def test_every_schema_change_is_found_newest_first(batches: list[list[int]], data: st.DataObject) -> None:
    log = Log(batches)
    low = data.draw(st.integers(0, log.end - 1))
    high = data.draw(st.integers(low + 1, log.end))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("triplicate.spark.change_feed.schema_history.SCAN_RECORDS", data.draw(st.sampled_from((0, 3, 512))))
        history = SchemaHistory(log.read, low, high)
        found = list(history.backward())
    expected = [(offset, version) for offset, version in log.expected if low <= offset < high]
    assert [(one.offset, one.version) for one in found] == expected[::-1]
    assert [one.change for one in found] == [ColumnAdded("t", f"c{version}") for _, version in expected[::-1]]
    assert history.version_before == max((version for offset, version in log.expected if offset < low), default=0)
    assert history.version_after == max((version for offset, version in log.expected if offset < high), default=0)


def test_a_log_without_schema_changes_is_not_read() -> None:
    log = Log([[1], *([[0]] * 3_000), [0]])
    assert [one.version for one in SchemaHistory(log.read, 1, log.end).backward()] == []
    assert log.reads == 2
    log.reads = 0
    assert [one.version for one in SchemaHistory(log.read, 0, log.end).backward()] == [1]
    assert log.reads == 2


def test_one_schema_change_takes_some_reads() -> None:
    log = Log([[0]] * 20_000 + [[1]] + [[0]] * 12_000)
    assert [one.offset for one in SchemaHistory(log.read, 0, log.end).backward()] == [20_000]
    assert log.reads <= 2 + 10, f"halving 32,001 records down to {SCAN_RECORDS}"


def test_many_schema_changes_are_read_in_one_go() -> None:
    log = Log([[0], *([[1], *([[0]] * 99)] * 200), [0]])
    found = [one.version for one in SchemaHistory(log.read, 0, log.end).backward()]
    assert found == list(range(200, 0, -1))
    assert log.reads <= 3


def test_records_of_large_transactions_are_passed_over() -> None:
    log = Log([[0]])
    large: list[Operation] = [inserted(PEOPLE, (1, "A" * 100_000, 1.0), rowids=[1])]
    for offset in range(1, 400):
        log.add(*batch_of([change(1)] if offset == 300 else large, schema=int(offset > 300)), offset)
    assert [one.offset for one in SchemaHistory(log.read, 0, 400).backward()] == [300]
    assert log.entries_read <= 30, "halving 400 records, of which each part but the last is too large to be read"


def test_versions_that_contradict_each_other_are_refused() -> None:
    log = Log([[0], [0]])
    log.add(*batch_of(ROW, schema=7), 2)
    log.add(*batch_of(ROW, schema=3), 3)
    with pytest.raises(FormatError, match="falls from 7 to 3"):
        list(SchemaHistory(log.read, 2, 4).backward())
    preamble, _ = batch_of([*ROW, change(1), change(2)])
    log.add(preamble, batch_of([*ROW, change(1)])[1], 4)
    with pytest.raises(FormatError, match="holds 1 schema changes, and says that it leads from schema version 1 to 3"):
        SchemaHistory(log.read, 4, 5)


def test_a_log_of_something_else_is_refused() -> None:
    log = Log([[0]])
    log.add(None, [b"x"], 1)
    with pytest.raises(ConfigError, match="no database wrote"):
        SchemaHistory(log.read, 0, 2)
