"""The stored forms of ledger metadata, versions 1 to 3. Source: BookKeeper `LedgerMetadataSerDe`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.ledger.metadata_rig import BASE, HEADER, OLD, with_field
from triplicate.errors import ArgumentError, FormatError
from triplicate.ledger import DigestType, EnsembleSegment, LedgerMetadata, decode_metadata, encode_metadata


def test_an_unknown_digest_type_or_state_is_refused_not_ignored() -> None:
    for addition, name in ((b"\x38\x09", "digestType"), (b"\x28\x09", "state")):
        with pytest.raises(FormatError, match=f"{name} has a value that this release does not know"):
            decode_metadata(with_field(encode_metadata(BASE), addition))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_metadata_is_written_back_in_the_version_found(version: int) -> None:
    metadata = OLD if version == 1 else replace(BASE, format_version=version, creator_token=None)
    data = encode_metadata(metadata)
    assert data.startswith(HEADER + b"%d\n" % version)
    found = decode_metadata(data)
    assert found == metadata
    changed = found.with_ensemble(3, ("a", "d", "c")).closed(8, 77)
    assert encode_metadata(changed).startswith(HEADER + b"%d\n" % version)
    assert decode_metadata(encode_metadata(changed)) == changed


def test_version_1_is_lines_of_text() -> None:
    closed = OLD.with_ensemble(5, ("a", "d", "c")).closed(8, 77)
    assert encode_metadata(closed) == HEADER + b"1\n2\n3\n77\n0\ta\tb\tc\n5\ta\td\tc\n8\tCLOSED"
    assert encode_metadata(OLD.recovering()).endswith(b"\n-102\tCLOSED")
    for metadata in (closed, OLD, OLD.recovering(), OLD.closed(-1, 0)):
        assert decode_metadata(encode_metadata(metadata)) == metadata
        assert decode_metadata(encode_metadata(metadata) + b"\n") == metadata


def test_version_1_of_one_bookie_is_not_taken_for_an_end() -> None:
    single = LedgerMetadata(
        1, 1, 1, (EnsembleSegment(0, ("CLOSED.example:3181",)),), digest_type=DigestType.CRC32, format_version=1, credentials_stored=False
    )
    assert decode_metadata(encode_metadata(single)) == single


def test_version_1_refuses_what_it_cannot_carry() -> None:
    changes: list[dict[str, Any]] = [{"ack_quorum": 1}, {"credentials_stored": True}, {"custom": {"a": b""}}, {"ctime_ms": 5}]
    for change in changes:
        with pytest.raises(ArgumentError, match="metadata format version 1"):
            encode_metadata(replace(OLD, **change))


def test_version_2_is_protobuf_text_without_creator_token() -> None:
    metadata = replace(BASE, format_version=2, password=b'\x00\xff"\n')
    data = encode_metadata(metadata)
    assert b"cToken" not in data
    assert b'password: "\\000\\377\\"\\n"' in data
    assert decode_metadata(data) == replace(metadata, creator_token=None)
    with pytest.raises(ArgumentError, match="unknown_fields"):
        encode_metadata(replace(metadata, unknown_fields=b"\x98\x01\x01"))


def test_version_2_as_java_writes_it_is_read() -> None:
    text = (
        b"quorumSize: 2\nensembleSize: 2\nlength: 12\nlastEntryId: 3\nstate: CLOSED\nsegment {\n"
        b'  ensembleMember: "127.0.0.1:3181"\n  ensembleMember: "127.0.0.1:3182"\n  firstEntryId: 0\n}\n'
        b'digestType: CRC32\npassword: "p\\303\\244ss"\nackQuorumSize: 1\ncustomMetadata {\n  key: "k"\n  value: "v"\n}\n'
    )
    metadata = decode_metadata(HEADER + b"2\n" + text)
    assert metadata.password == "päss".encode()
    assert (metadata.ack_quorum, metadata.last_entry_id, metadata.custom) == (1, 3, {"k": b"v"})


def test_absent_fields_read_as_bookkeeper_reads_them() -> None:
    # quorumSize 2, ensembleSize 2, length 5, state CLOSED, one segment; no lastEntryId, ackQuorumSize, digest, password.
    body = bytes.fromhex("08021002180528033208") + b"\x0a\x01a\x0a\x01b\x10\x00"
    metadata = decode_metadata(HEADER + b"3\n" + bytes([len(body)]) + body)
    assert metadata.ack_quorum == metadata.write_quorum == 2
    assert metadata.last_entry_id == 0
    assert not metadata.credentials_stored
    assert metadata.ctime_ms is None
    assert decode_metadata(encode_metadata(metadata)) == metadata


def test_length_and_last_entry_of_an_open_ledger_are_ignored() -> None:
    data = with_field(encode_metadata(BASE), bytes.fromhex("18072005"))
    assert decode_metadata(data) == BASE


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not ledger metadata"),
        (b"something else", "not ledger metadata"),
        (HEADER + b"3", "format version"),
        (HEADER + b"x\n", "format version"),
        (HEADER + b"12345678901\n", "format version"),
        (HEADER + b"4\n", "reads 1 to 3"),
        (HEADER + b"3\n", "damaged"),
        (HEADER + b"3\n\xff\xff\xff\xff\xff\xff", "damaged"),
        (HEADER + b"3\n\x00", "required field is missing"),
        (HEADER + b"3\n\x0d\x08\x01\x10\x01\x18\x00\x32\x05\x0a\x01a\x10\x00", "required field is missing"),
        (HEADER + b"2\nnonsense", "damaged"),
        (HEADER + b"2\nquorumSize: 1\n", "required field is missing"),
        (HEADER + b"1\n1\n1\n", "damaged"),
        (encode_metadata(BASE) + b"x", "the length before the message is"),
        (encode_metadata(BASE)[:-1], "the length before the message is"),
    ],
)
def test_bytes_that_are_not_metadata_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        decode_metadata(data)


def test_digest_type_without_password_is_refused() -> None:
    body = bytes.fromhex("0801100118002801") + b"\x32\x05\x0a\x01a\x10\x00" + b"\x38\x03"
    with pytest.raises(FormatError, match="both be there or both be absent"):
        decode_metadata(HEADER + b"3\n" + bytes([len(body)]) + body)
