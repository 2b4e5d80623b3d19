from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from triplicate.errors import ArgumentError, FormatError
from triplicate.ledger import DigestType, EnsembleSegment, LedgerMetadata, LedgerState, decode_metadata, encode_metadata

HEADER = b"BookieMetadataFormatVersion\t"
BASE = LedgerMetadata(3, 2, 2, (EnsembleSegment(0, ("a", "b", "c")),), password=b"secret", creator_token=9, custom={"application": b"test"})
OLD = LedgerMetadata(
    3, 2, 2, (EnsembleSegment(0, ("a", "b", "c")),), digest_type=DigestType.CRC32, format_version=1, credentials_stored=False
)


def with_field(data: bytes, addition: bytes) -> bytes:
    """Version-3 metadata with more protobuf bytes at its end."""
    start = data.index(b"\n") + 1
    body = data[start + 1 :] + addition
    assert len(data) - start - 1 < 128 > len(body)
    return data[:start] + bytes([len(body)]) + body


def test_the_segment_of_an_entry_is_the_last_that_begins_before() -> None:
    metadata = BASE.with_ensemble(5, ("a", "d", "c")).with_ensemble(9, ("a", "d", "e"))
    starts = [metadata.segment_of(entry_id).first_entry_id for entry_id in (0, 4, 5, 8, 9, 10**12)]
    assert starts == [0, 0, 5, 5, 9, 9]
    assert metadata.ensemble_of(6) == ("a", "d", "c")
    assert metadata.last_segment.ensemble == ("a", "d", "e")


def test_an_entry_before_the_first_segment_has_none() -> None:
    with pytest.raises(ArgumentError, match="entry -1 lies before"):
        BASE.segment_of(-1)


def test_a_change_at_the_last_segments_start_replaces_it() -> None:
    metadata = BASE.with_ensemble(5, ("a", "d", "c")).with_ensemble(5, ("a", "e", "c"))
    assert metadata.segments == (BASE.segments[0], EnsembleSegment(5, ("a", "e", "c")))
    with pytest.raises(ArgumentError, match="before the last one, at 5"):
        metadata.with_ensemble(4, ("a", "b", "c"))


def test_states_go_from_open_over_recovery_to_closed() -> None:
    recovering = BASE.recovering()
    assert recovering.state is LedgerState.IN_RECOVERY
    closed = recovering.closed(6, 100)
    assert (closed.is_closed, closed.last_entry_id, closed.length) == (True, 6, 100)
    assert closed.closed(6, 100) == closed
    with pytest.raises(ArgumentError, match="closed at entry 6"):
        closed.closed(7, 100)
    with pytest.raises(ArgumentError, match="needs no recovery"):
        closed.recovering()


def test_a_closed_ledger_may_change_its_ensemble_and_end_before_its_last_segment() -> None:
    closed = BASE.with_ensemble(7, ("a", "d", "c")).closed(6, 100)
    moved = closed.with_ensemble(7, ("x", "d", "c"))
    assert decode_metadata(encode_metadata(moved)) == moved


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"ensemble_size": 0}, "ensemble_size"),
        ({"ensemble_size": 4}, "ensemble_size"),
        ({"write_quorum": 4}, "write_quorum"),
        ({"write_quorum": 0}, "write_quorum"),
        ({"ack_quorum": 3}, "ack_quorum"),
        ({"ack_quorum": 0}, "ack_quorum"),
        ({"segments": ()}, "segments"),
        ({"segments": (EnsembleSegment(0, ("a", "b", "c")), EnsembleSegment(0, ("a", "b", "c")))}, "segments"),
        ({"last_entry_id": 3}, "last_entry_id"),
        ({"length": 3}, "length"),
        ({"state": LedgerState.CLOSED, "last_entry_id": -2}, "last_entry_id"),
        ({"state": LedgerState.CLOSED, "length": -1}, "length"),
        ({"format_version": 4}, "format_version"),
        ({"ctime_ms": 2**63}, "ctime_ms"),
    ],
)
def test_impossible_metadata_is_refused_by_name(change: dict[str, Any], name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        replace(BASE, **change)


def test_unknown_fields_survive_a_change_of_ensemble() -> None:
    unknown = bytes.fromhex("9a0103666f6f")  # field 19: "foo"
    metadata = decode_metadata(with_field(encode_metadata(BASE), unknown))
    assert metadata.unknown_fields == unknown
    changed = metadata.with_ensemble(4, ("a", "d", "c")).recovering().closed(7, 10)
    assert encode_metadata(changed).endswith(unknown)
    assert decode_metadata(encode_metadata(changed)) == changed


def test_unknown_fields_of_a_segment_survive_a_change_of_its_ensemble() -> None:
    metadata = replace(BASE, segments=(EnsembleSegment(0, ("a", "b", "c"), bytes.fromhex("4805")),))
    found = decode_metadata(encode_metadata(metadata))
    assert found.with_ensemble(0, ("a", "b", "d")).segments == (EnsembleSegment(0, ("a", "b", "d"), bytes.fromhex("4805")),)


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


def test_equal_metadata_hash_alike() -> None:
    assert hash(BASE) == hash(replace(BASE, custom=dict(BASE.custom)))
