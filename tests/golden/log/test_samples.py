"""Samples of every format of `docs/formats/log.md`, written by the first release that had it. Every later release must read them.

To make the samples of a new format version: ``python -m tests.golden.log.test_samples``. Never overwrite an existing sample.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from triplicate.config.log_settings import LogSettings
from triplicate.errors import FormatError
from triplicate.ledger import Entry
from triplicate.log.core.compression import Compressor
from triplicate.log.core.consumer_state import ConsumerState, decode_consumer, encode_consumer
from triplicate.log.core.encrypted_entries import EntryDecoder, encrypt_entry
from triplicate.log.core.encryption import ENTRIES, STAGED, WRITTEN, KnownKeys, LedgerEncryptor
from triplicate.log.core.forgotten_publishers import ForgottenPublishers, decode_forgotten, encode_forgotten
from triplicate.log.core.head import (
    Archive,
    Head,
    LogSegment,
    Owner,
    Page,
    PageReference,
    PublisherState,
    Purpose,
    PurposeKind,
    Quorums,
    SegmentState,
    decode_head,
    decode_owner,
    decode_page,
    decode_publisher,
    encode_head,
    encode_owner,
    encode_page,
    encode_publisher,
)
from triplicate.log.core.payload import Producer, decode_entry
from triplicate.log.core.payload_encoder import columns_of, encode_columns, encode_control
from triplicate.log.core.producer_table import ProducerState, decode_producers, encode_producers
from triplicate.log.core.publish_request import PublishRequest, decode_request, encode_request

HERE = Path(__file__).parent

SEGMENTS = (
    LogSegment(7, 1200, 100, 4096, 9, 1_700_000_000_000_000, 1_700_000_001_000_000, SegmentState.CLOSED),
    LogSegment(
        3, 1300, 50, 2048, 4, 1_700_000_002_000_000, 1_700_000_003_000_000, SegmentState.ARCHIVED, Archive("a/b.parquet", "sha256:00")
    ),
    LogSegment(9, 1350, 1, 60, 1, 1_700_000_004_000_000, 1_700_000_004_000_000, SegmentState.DELETING),
)
REFERENCES = (
    PageReference(4, 1, 0, 800, 64, 1_600_000_000_000_000, 1_650_000_000_000_000),
    PageReference(6, 0, 800, 1200, 32, 1_650_000_000_000_000, 1_699_000_000_000_000),
)
HEAD = Head(
    "00112233445566778899aabbccddeeff", 5, "ffeeddccbbaa99887766554433221100",
    Owner("node-1", "0123456789abcdef0123456789abcdef"), 17,
    LogSegment(11, 1351), SEGMENTS, REFERENCES, LogSettings(roll_size_bytes=1 << 20, retain_age_s=3600.0, compression="zstd"),
    1_700_000_000_000,
)  # fmt: skip
REDUCED = replace(SEGMENTS[0], ledger_id=12, reduced=Quorums(2, 2))
HEAD_2 = replace(
    HEAD, recent=(REDUCED, *SEGMENTS[1:]), open=LogSegment(11, 1351, reduced=Quorums(2, 2)), purpose=Purpose(PurposeKind.DATABASE, "shop"),
    past_time_us=1_600_000_000_000_000,
)  # fmt: skip
LOST = LogSegment(13, 1200, 100, 0, -1, 0, 0, SegmentState.LOST)
HEAD_2_LOST = replace(HEAD_2, recent=(LOST, *SEGMENTS[1:]), pages=(replace(REFERENCES[0], size_bytes=123_456), REFERENCES[1]))
FORGOTTEN = ForgottenPublishers({"0123456789abcdef": 12, "fedcba9876543210": 2**62})
REQUEST = PublishRequest(
    "0011", "Spark ingest", "ingest", 7, (replace(SEGMENTS[0], first_offset=0), replace(SEGMENTS[0], ledger_id=8, first_offset=0))
)
REQUEST_UNNAMED = replace(REQUEST, application=None, batch=None)
REQUEST_LOG = replace(REQUEST, log_id="0123456789abcdef" * 2)
PUBLISHER = PublisherState(12, 1200, 1300, 1_700_000_000_000)
OWNER = Owner("node-1", "0123456789abcdef0123456789abcdef")
RECORDS = {
    "values": [b"first", None, b"", b"fourth" * 40],
    "keys": [b"k", b"", None, b"kk"],
    "timestamps_us": [1, -1, 1_700_000_000_000_000, 0],
    "headers": [(("name", b"value"), ("nothing", None)), (), (("ü", b""),), ()],
    "transaction_ids": [1, 2, 3, 2**63 - 1],
}
PRODUCER = Producer(bytes(range(16)), 2, 77)
PRODUCERS = [
    ProducerState(bytes(range(16)), 2, 77, 1340, 1_700_000_003_000_000),
    ProducerState(bytes(16 * [255]), 2**32 - 1, 2**64 - 1, 1350, 1_700_000_004_000_000),
]
CONSUMER = ConsumerState(HEAD.log_id, 1300, OWNER, 1_700_000_000_000)
ENCRYPTED = replace(HEAD_2, key_id="2026-11-26")
KEY = bytes(range(100, 132))


def test_the_head_opens() -> None:
    assert decode_head((HERE / "head.json").read_bytes(), "l") == HEAD
    assert decode_head((HERE / "head-2.json").read_bytes(), "l") == HEAD_2
    assert encode_head(HEAD_2) == (HERE / "head-2.json").read_bytes()
    assert decode_head((HERE / "head-2-lost.json").read_bytes(), "l") == HEAD_2_LOST
    assert encode_head(HEAD_2_LOST) == (HERE / "head-2-lost.json").read_bytes()


def test_an_old_head_of_a_databases_log_belongs_to_the_database() -> None:
    purpose = decode_head((HERE / "head.json").read_bytes(), "database.my.shop.0b759c14").purpose
    assert purpose == Purpose(PurposeKind.DATABASE, "my.shop")


def test_a_head_with_a_field_or_purpose_of_a_later_release_is_refused() -> None:
    data = (HERE / "head-2.json").read_bytes()
    for changed in (data.replace(b'"first":17', b'"first":17,"later":1'), data.replace(b'"kind":"database"', b'"kind":"later"')):
        with pytest.raises(FormatError, match=r"later.*upgrade Triplicate"):
            decode_head(changed, "l")


def test_pages_open() -> None:
    assert decode_page((HERE / "page-0.json").read_bytes(), "l", 0) == Page(0, segments=SEGMENTS)
    assert decode_page((HERE / "page-1.json").read_bytes(), "l", 1) == Page(1, references=REFERENCES[1:])
    assert decode_page((HERE / "page-0-2.json").read_bytes(), "l", 0) == Page(0, segments=(REDUCED, *SEGMENTS[1:]))


def test_the_nodes_beside_the_head_open() -> None:
    assert decode_publisher((HERE / "publisher.json").read_bytes(), "app") == PUBLISHER
    assert decode_owner((HERE / "owner.json").read_bytes(), "l") == OWNER
    assert decode_forgotten((HERE / "forgotten.json").read_bytes(), "l") == FORGOTTEN
    assert encode_forgotten(FORGOTTEN) == (HERE / "forgotten.json").read_bytes()
    assert decode_producers((HERE / "producers.json").read_bytes(), "l") == (PRODUCERS, 1351)
    assert encode_producers(PRODUCERS, 1351) == (HERE / "producers.json").read_bytes()
    assert decode_consumer((HERE / "consumer.json").read_bytes(), "l", "billing") == CONSUMER
    assert encode_consumer(CONSUMER) == (HERE / "consumer.json").read_bytes()
    for request, name in ((REQUEST, "request.json"), (REQUEST_UNNAMED, "request-unnamed.json"), (REQUEST_LOG, "request-log.json")):
        assert decode_request((HERE / name).read_bytes(), "l") == request
        assert encode_request(request) == (HERE / name).read_bytes()


def test_entries_of_every_codec_open() -> None:
    for codec in ("none", "zlib", "zstd"):
        view = decode_entry((HERE / f"entry-{codec}.bin").read_bytes())
        assert (view.header.first_index, view.header.wall_time_us, view.header.producer) == (42, 1_700_000_000_000_000, PRODUCER)
        assert view.header.flags >> 1 & 7 == {"none": 0, "zlib": 1, "zstd": 2}[codec]
        assert view.preamble is not None
        assert bytes(view.preamble) == b"preamble"
        assert view.values() == RECORDS["values"]
        assert view.keys() == RECORDS["keys"]
        assert view.headers() == RECORDS["headers"]
        assert view.timestamps_us is not None
        assert view.timestamps_us.tolist() == RECORDS["timestamps_us"]
        assert view.transaction_ids is not None
        assert view.transaction_ids.tolist() == RECORDS["transaction_ids"]


def test_a_control_entry_opens() -> None:
    view = decode_entry((HERE / "entry-control.bin").read_bytes())
    assert view.control == {"kind": "segment", "epoch": 5, "first_offset": 1351, "log": HEAD.log_id, "writer": "node-1"}


def test_encrypted_entries_open() -> None:
    decoder = EntryDecoder("l", ENCRYPTED.log_id, KnownKeys({ENCRYPTED.key_id: KEY}))
    for name, first_offset in (("entry-encrypted.bin", 1309), ("entry-encrypted-staged.bin", 0)):
        payload = (HERE / name).read_bytes()
        view = decoder.decode(Entry(7, 1, 0, len(payload), payload), first_offset, is_copied=False)
        assert (view.header.first_index, view.header.wall_time_us, view.header.producer) == (42, 1_700_000_000_000_000, PRODUCER)
        assert view.values() == RECORDS["values"]
    payload = (HERE / "entry-encrypted-control.bin").read_bytes()
    assert decoder.decode(Entry(7, 0, -1, len(payload), payload), 1351, is_copied=False).control == {"kind": "abort", "number": 1}


def test_the_head_of_an_encrypted_log_opens() -> None:
    assert decode_head((HERE / "head-2-encrypted.json").read_bytes(), "l") == ENCRYPTED
    assert encode_head(ENCRYPTED) == (HERE / "head-2-encrypted.json").read_bytes()


def test_an_encrypted_entry_has_the_documented_layout() -> None:
    data = (HERE / "entry-encrypted.bin").read_bytes()
    plain = (HERE / "entry-zstd.bin").read_bytes()
    assert data[:6] == plain[:6]
    assert struct.unpack_from("<HI", data, 6) == (136, int.from_bytes(plain[8:12], "little") | 1 << 12)
    assert data[12:72] == plain[12:72], "the rest of the header and the producer are as in a plain entry"
    assert struct.unpack_from("<16s16sQQQBB6s", data, 72) == (
        b"2026-11-26".ljust(16, b"\0"), bytes(range(16)), 7, 0, 1351, 0, 0, bytes(6),
    )  # fmt: skip
    assert len(data) == 136 + (len(plain) - 72) + 16


def test_the_entry_has_the_documented_layout() -> None:
    data = (HERE / "entry-none.bin").read_bytes()
    assert struct.unpack_from("<4sHHIIQqII", data) == (
        b"TRLE", 1, 72, 0b1111_1111_0000, 4, 42, 1_700_000_000_000_000, len(data) - 72, 0,
    )  # fmt: skip
    assert struct.unpack_from("<16sIIQ", data, 40) == (bytes(range(16)), 2, 0, 77)
    assert struct.unpack_from("<I8s", data, 72) == (8, b"preamble")
    assert struct.unpack_from("<5I", data, 72 + 16) == (0, 5, 5, 5, 245)
    assert data[72 + 40 : 72 + 45] == b"first"
    assert struct.unpack_from("<4q", data, 72 + 40 + 248) == (1, -1, 1_700_000_000_000_000, 0)
    assert data[-16:] == bytes([0b1101]) + bytes(7) + bytes([0b1011]) + bytes(7)


def _samples() -> dict[str, bytes]:
    columns = columns_of(
        RECORDS["values"],  # type: ignore[arg-type]
        keys=RECORDS["keys"],  # type: ignore[arg-type]
        timestamps_us=RECORDS["timestamps_us"],  # type: ignore[arg-type]
        headers=RECORDS["headers"],  # type: ignore[arg-type]
        transaction_ids=RECORDS["transaction_ids"],  # type: ignore[arg-type]
    )
    samples = {
        f"entry-{codec}.bin": encode_columns(columns, Compressor(codec), preamble=b"preamble", producer=PRODUCER).payload(
            42, 1_700_000_000_000_000
        )
        for codec in ("none", "zlib", "zstd")
    }
    encoded = encode_columns(columns, Compressor("zstd"), preamble=b"preamble", producer=PRODUCER)

    def encryptor(origin: int) -> LedgerEncryptor:
        return LedgerEncryptor(ENCRYPTED.key_id, KEY, ENTRIES, ENCRYPTED.log_id, 7, bytes(range(16)), origin)

    header = {"epoch": 5, "first_offset": 1351, "log": HEAD.log_id, "writer": "node-1"}
    return {
        **samples,
        "entry-control.bin": encode_control("segment", header).payload(0, 1_700_000_000_000_000),
        "entry-encrypted.bin": encrypt_entry(encryptor(WRITTEN), encoded, 42, 1351, 1_700_000_000_000_000),
        "entry-encrypted-staged.bin": encrypt_entry(encryptor(STAGED), encoded, 42, 42, 1_700_000_000_000_000),
        "entry-encrypted-control.bin": encrypt_entry(
            encryptor(WRITTEN), encode_control("abort", {"number": 1}), 0, 1351, 1_700_000_000_000_000
        ),
        "head-2-encrypted.json": encode_head(ENCRYPTED),
        "head-2.json": encode_head(HEAD_2),
        "head-2-lost.json": encode_head(HEAD_2_LOST),
        "request.json": encode_request(REQUEST),
        "request-unnamed.json": encode_request(REQUEST_UNNAMED),
        "request-log.json": encode_request(REQUEST_LOG),
        "forgotten.json": encode_forgotten(FORGOTTEN),
        "page-0-2.json": encode_page(Page(0, segments=(REDUCED, *SEGMENTS[1:]))),
        "publisher.json": encode_publisher(PUBLISHER),
        "owner.json": encode_owner(OWNER),
        "producers.json": encode_producers(PRODUCERS, 1351),
        "consumer.json": encode_consumer(CONSUMER),
    }


if __name__ == "__main__":
    for name, data in _samples().items():
        if not (HERE / name).exists():
            (HERE / name).write_bytes(data)
