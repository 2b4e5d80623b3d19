"""The records of backups in the metadata."""

from __future__ import annotations

from dataclasses import replace

import pytest

from triplicate.errors import FormatError
from triplicate.sql.backup.core.backup_records import (
    KEPT,
    TEXT_MAX,
    BackupRecord,
    decode_records,
    encode_records,
    record_of,
    with_record,
)
from triplicate.sql.backup.core.manifest import Manifest, Part, PartKind

MANIFEST = Manifest(
    database="shop",
    identity="0b759c14" * 4,
    log="database.shop.0b759c14",
    log_id="ffeeddccbbaa99887766554433221100",
    lease_ms=750,
    schema="3393389486497b036d96d10f6d979dd0",
    parts=(
        Part("full-1351-1700000000000.sqlite", PartKind.FULL, 9, "", 0, 1351, 5, 1_699_999_999_000, 1_700_000_000_000),
        Part("log-1351-1355.records", PartKind.LOG, 7, "", 1351, 1355, 6, 1_700_000_600_000, 1_700_000_601_000),
    ),
)


def record(number: int) -> BackupRecord:
    return BackupRecord(PartKind.FULL, number, 0, number, 0, 1, "/b", "ann@host")


def test_a_record_has_the_facts_of_the_last_part() -> None:
    part = MANIFEST.parts[-1]
    assert record_of(MANIFEST, "b", "ann@host") == BackupRecord(
        PartKind.LOG, part.made_ms, part.first, part.end, part.time_ms, part.size_bytes, "b", "ann@host"
    )
    assert record_of(replace(MANIFEST, key_id="new"), "b", "m").key_id == "new"


def test_the_newest_records_are_kept_in_the_order_of_their_making() -> None:
    records: tuple[BackupRecord, ...] = ()
    for number in (5, 1, *range(10, 10 + KEPT)):
        records = with_record(records, record(number))
    assert [one.made_ms for one in records] == list(range(10, 10 + KEPT))


def test_a_record_that_is_written_again_is_there_once() -> None:
    assert with_record((record(1),), record(1)) == (record(1),)


def test_the_records_of_any_paths_fit_a_node_of_the_metadata() -> None:
    long = [record_of(MANIFEST, "\x01" * 100_000, "ü" * 100_000)] * KEPT
    assert len(long[0].place) == TEXT_MAX
    assert len(encode_records(long)) < 1_000_000


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"v":2,"backups":[]}', b'{"v":1,"backups":[{}]}', b'{"v":1,"backups":[{"kind":"half"}]}', b'{"v":1}']
)
def test_other_content_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        decode_records(data)
