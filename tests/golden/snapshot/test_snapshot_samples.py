"""Samples of the formats of `docs/formats/snapshot.md`, written by the first release that had them. Every later release must read them.

To make the samples of a new format version: ``python -m tests.golden.snapshot.test_snapshot_samples``. Never overwrite an existing sample.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import replace
from pathlib import Path

from triplicate.log.core.compression import Compressor
from triplicate.log.core.encryption import SNAPSHOT, WRITTEN, KnownKeys, LedgerDecryptor, LedgerEncryptor
from triplicate.log.core.snapshot_format import (
    ContentCheck,
    SnapshotHeader,
    Trailer,
    decode_chunk,
    decode_header,
    decode_trailer,
    digest_text,
    encode_chunk,
    encode_header,
    encode_trailer,
    encrypt,
)
from triplicate.log.core.snapshot_list import Snapshot, SnapshotList, SnapshotState, decode_snapshots, encode_snapshots

HERE = Path(__file__).parent
KEY = bytes(range(100, 132))
CONTENT = b"content " * 100
DIGEST = digest_text(hashlib.sha256(CONTENT))
IDENTITY = "0b759c14" * 4
HEADER = SnapshotHeader(
    "00112233445566778899aabbccddeeff", "ffeeddccbbaa99887766554433221100", 1351, 5, 1_700_000_000_000, "sql", "sqlite", IDENTITY, "node-1",
    "auto", {"page_size": 4096, "sqlite": "3.54.1"},
)  # fmt: skip
GOOD = Snapshot(
    HEADER.snapshot_id, 17, HEADER.position, HEADER.epoch, HEADER.time_ms, len(CONTENT), 700, 1, DIGEST, "sql", "sqlite", IDENTITY,
    "node-1", 11, 4096,
)  # fmt: skip
DAMAGED = Snapshot(
    "ff112233445566778899aabbccddeeff", 18, 1400, 6, 1_700_000_600_000, 900, 800, 1, DIGEST, "sql", "sqlite", IDENTITY, "node-2",
    state=SnapshotState.DAMAGED, reason="node-1: its trailer says ü",
)  # fmt: skip
LIST = SnapshotList((GOOD, DAMAGED), 1500)


def test_the_list_opens() -> None:
    assert decode_snapshots((HERE / "list.json").read_bytes(), "l") == LIST
    assert encode_snapshots(LIST) == (HERE / "list.json").read_bytes()


def test_the_entries_open() -> None:
    header, trailer = (HERE / "header.bin").read_bytes(), (HERE / "trailer.bin").read_bytes()
    assert decode_header(header, "header") == HEADER
    assert decode_trailer(trailer, "trailer") == Trailer(1, len(CONTENT), DIGEST, digest_text(hashlib.sha256(header)))
    for codec in ("none", "zlib", "zstd"):
        chunk = (HERE / f"chunk-{codec}.bin").read_bytes()
        assert decode_chunk(chunk, 0, "chunk") == CONTENT
        check = ContentCheck(GOOD)
        assert check.header(header) == HEADER
        check.chunk(chunk)
        check.trailer(trailer)


def test_encrypted_entries_open() -> None:
    header, chunk, trailer = ((HERE / f"encrypted-{name}.bin").read_bytes() for name in ("header", "chunk", "trailer"))
    listed = replace(GOOD, digest=digest_text(hashlib.sha256(chunk)))
    check = ContentCheck(listed, LedgerDecryptor("l", HEADER.log_id, KnownKeys({"2026-11-26": KEY}), SNAPSHOT))
    assert check.header(header) == HEADER
    assert check.chunk(chunk) == CONTENT
    check.trailer(trailer)


def test_an_encrypted_chunk_has_the_documented_layout() -> None:
    data = (HERE / "encrypted-chunk.bin").read_bytes()
    assert struct.unpack_from("<4sBBBBII", data) == (b"TRSN", 1, 2, 0, 1, 0, len(CONTENT))
    assert struct.unpack_from("<16s16sQQQBB6s", data, 16) == (
        b"2026-11-26".ljust(16, b"\0"), bytes(range(16)), 17, 1, 1, 0, 0, bytes(6),
    )  # fmt: skip
    assert len(data) == 16 + 64 + len(CONTENT) + 16


def test_a_chunk_has_the_documented_layout() -> None:
    data = (HERE / "chunk-none.bin").read_bytes()
    assert struct.unpack_from("<4sBBBBII", data) == (b"TRSN", 1, 2, 0, 0, 0, len(CONTENT))
    assert data[16:] == CONTENT


def _samples() -> dict[str, bytes]:
    header = encode_header(HEADER)
    chunks = {f"chunk-{codec}.bin": encode_chunk(0, CONTENT, Compressor(codec)) for codec in ("none", "zlib", "zstd")}
    trailer = encode_trailer(Trailer(1, len(CONTENT), DIGEST, digest_text(hashlib.sha256(header))))
    return {"list.json": encode_snapshots(LIST), "header.bin": header, "trailer.bin": trailer, **chunks, **_encrypted_samples()}


def _encrypted_samples() -> dict[str, bytes]:
    encryptor = LedgerEncryptor("2026-11-26", KEY, SNAPSHOT, HEADER.log_id, GOOD.ledger_id, bytes(range(16)), WRITTEN)
    header = encrypt(encryptor, encode_header(HEADER), 0)
    chunk = encrypt(encryptor, encode_chunk(0, CONTENT, Compressor("none")), 1)
    trailer = Trailer(1, len(CONTENT), digest_text(hashlib.sha256(chunk)), digest_text(hashlib.sha256(header)))
    return {
        "encrypted-header.bin": header,
        "encrypted-chunk.bin": chunk,
        "encrypted-trailer.bin": encrypt(encryptor, encode_trailer(trailer), 2),
    }


if __name__ == "__main__":
    for name, data in _samples().items():
        if not (HERE / name).exists():
            (HERE / name).write_bytes(data)
