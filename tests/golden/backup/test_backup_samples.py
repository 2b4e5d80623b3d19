"""Samples of the formats of `docs/formats/backup.md`, written by the first release that had them. Every later release must read them.

To make the samples of a new format version: ``python -m tests.golden.backup.test_backup_samples``. Never overwrite an existing sample.
"""

from __future__ import annotations

import hashlib
import tarfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path

from triplicate.sql.backup.core.backup_records import BackupRecord, decode_records, encode_records, record_of
from triplicate.sql.backup.core.manifest import Manifest, Part, PartKind, decode_manifest, digest_text, encode_manifest
from triplicate.sql.backup.core.part_cipher import BLOCK_BYTES, BackupKey, sealed, unsealed
from triplicate.sql.backup.core.record_file import START, BatchFrame, RecordFileReader, encode_frame
from triplicate.sql.backup.core.tar_format import END, ArchiveMember, encode_header, padding

HERE = Path(__file__).parent
FRAMES = (BatchFrame(1351, 5, b"TB header", (b"one", b"", b"three")), BatchFrame(1354, 6, b"TB", (b"four",)))
RECORDS = START + b"".join(map(encode_frame, FRAMES))
FULL = b"SQLite format 3\0" + bytes(84)
MANIFEST = Manifest(
    database="shop",
    identity="0b759c14" * 4,
    log="database.shop.0b759c14",
    log_id="ffeeddccbbaa99887766554433221100",
    lease_ms=750,
    schema="3393389486497b036d96d10f6d979dd0",
    parts=(
        Part("full-1351-1700000000000.sqlite", PartKind.FULL, len(FULL), digest_text(hashlib.sha256(FULL)), 0, 1351, 5, 1_699_999_999_000,
             1_700_000_000_000),
        Part("log-1351-1355.records", PartKind.LOG, len(RECORDS), digest_text(hashlib.sha256(RECORDS)), 1351, 1355, 6, 1_700_000_600_000,
             1_700_000_601_000),
    ),
    administrator=("ann", "SCRAM-SHA-256$4096:c2FsdA==$c3RvcmVk:c2VydmVy"),
    is_encrypted=True,
)  # fmt: skip


def archive() -> bytes:
    """The form of a backup in one file."""
    out = b""
    for name, content in (("manifest.json", encode_manifest(MANIFEST)), (MANIFEST.full.file, FULL)):
        out += encode_header(ArchiveMember(name, len(content)), 1_700_000_000_000) + content + bytes(padding(len(content)))
    return out + END


KEY, SALT = BackupKey("2026-01", bytes(range(32))), bytes(range(100, 116))
ENCRYPTED_NAME = "full-1351-1700000000000.sqlite.encrypted"
PLAIN = bytes(at % 251 for at in range(BLOCK_BYTES)) + b"last"
ENCRYPTED = sealed(KEY, SALT, MANIFEST.identity, ENCRYPTED_NAME, PLAIN)
SEALED = sealed(KEY, SALT, MANIFEST.identity, "administrator", b'["ann", "verifier"]')
ENCRYPTED_MANIFEST = replace(
    MANIFEST,
    administrator=None,
    key_id=KEY.key_id,
    sealed=SEALED.hex(),
    parts=(replace(MANIFEST.full, file=ENCRYPTED_NAME, size_bytes=len(ENCRYPTED), digest=digest_text(hashlib.sha256(ENCRYPTED))),),
)
RECORDED = (
    record_of(replace(MANIFEST, parts=MANIFEST.parts[:1]), "/backups/shop", "ann@shop-1"),
    record_of(MANIFEST, "../shöp", "ann@shop-1"),
    BackupRecord(PartKind.FULL, 1_700_000_700_000, 0, 1355, 0, 123, "/backups/shop.tar", "1000@5f3c", "new"),
)
SAMPLES = {
    "manifest.json": encode_manifest(MANIFEST),
    "log.records": RECORDS,
    "backup.tar": archive(),
    "manifest-2.json": encode_manifest(ENCRYPTED_MANIFEST),
    "part.encrypted": ENCRYPTED,
    "recorded.json": encode_records(RECORDED),
}


def test_the_manifest_opens() -> None:
    data = (HERE / "manifest.json").read_bytes()
    assert decode_manifest(data, "sample") == MANIFEST
    assert encode_manifest(MANIFEST) == data


def test_the_records_open() -> None:
    data = (HERE / "log.records").read_bytes()
    reader = RecordFileReader("sample", 1351)
    frames = [frame for at in range(0, len(data), 7) for frame in reader.feed(data[at : at + 7])]
    reader.finish(1355)
    assert [BatchFrame(*frame[:3], tuple(frame.records)) for frame in frames] == list(FRAMES)
    assert data == RECORDS


def test_the_archive_opens() -> None:
    data = (HERE / "backup.tar").read_bytes()
    with tarfile.open(fileobj=BytesIO(data)) as opened:
        assert opened.getnames() == ["manifest.json", MANIFEST.full.file]
    assert data == archive()


def test_the_encrypted_part_opens() -> None:
    manifest = decode_manifest((HERE / "manifest-2.json").read_bytes(), "sample")
    assert manifest == ENCRYPTED_MANIFEST
    data = (HERE / "part.encrypted").read_bytes()
    assert digest_text(hashlib.sha256(data)) == manifest.full.digest
    assert unsealed(KEY, manifest.identity, manifest.full.file, data, "sample") == PLAIN
    assert unsealed(KEY, manifest.identity, "administrator", bytes.fromhex(manifest.sealed), "sample") == b'["ann", "verifier"]'
    assert data == ENCRYPTED


def test_the_records_in_the_metadata_open() -> None:
    data = (HERE / "recorded.json").read_bytes()
    assert decode_records(data) == RECORDED
    assert encode_records(RECORDED) == data


def write() -> None:
    for name, data in SAMPLES.items():
        path = HERE / name
        if not path.exists():
            path.write_bytes(data)


if __name__ == "__main__":
    write()
