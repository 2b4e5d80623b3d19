from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplicate.errors import DigestMismatch
from triplicate.ledger import (
    DigestType,
    DigestVerifier,
    Entry,
    EntryCodec,
    decode_availability,
    decode_entries,
    encode_availability,
)

IDS = st.integers(0, 2**63 - 1)
LACS = st.integers(-1, 2**63 - 1)
TYPES = st.sampled_from(DigestType)
PAYLOADS = st.sampled_from([b"", b"a", b"b", b"cdefg"])
KEYED = st.sampled_from([DigestType.CRC32, DigestType.HMAC, DigestType.CRC32C])


@settings(deadline=None)
@given(IDS, IDS, LACS, IDS, st.binary(max_size=300), st.binary(max_size=30), TYPES)
def test_entries_round_trip(
    ledger_id: int, entry_id: int, last_add_confirmed: int, length: int, payload: bytes, password: bytes, digest_type: DigestType
) -> None:
    codec = EntryCodec(ledger_id, digest_type, password)
    body = codec.encode(entry_id, last_add_confirmed, length, payload)
    assert len(body) == codec.overhead + len(payload)
    assert codec.decode(body, entry_id) == Entry(ledger_id, entry_id, last_add_confirmed, length, payload)
    assert DigestVerifier(digest_type, password).verify(body)
    assert DigestVerifier(digest_type, password).verify_all([body, body])
    assert codec.decode_lac(codec.encode_lac(last_add_confirmed)) == last_add_confirmed


@settings(deadline=None, max_examples=30)
@given(IDS, IDS, LACS, IDS, st.binary(max_size=40), KEYED)
def test_every_flipped_bit_is_refused(
    ledger_id: int, entry_id: int, last_add_confirmed: int, length: int, payload: bytes, digest_type: DigestType
) -> None:
    codec = EntryCodec(ledger_id, digest_type, b"password")
    verifier = DigestVerifier(digest_type, b"password")
    body = codec.encode(entry_id, last_add_confirmed, length, payload)
    for index in range(len(body) * 8):
        flipped = bytearray(body)
        flipped[index // 8] ^= 1 << index % 8
        assert not verifier.verify(bytes(flipped))
        assert not verifier.verify_all([body, bytes(flipped), body])
        with pytest.raises(DigestMismatch):
            codec.decode(bytes(flipped), entry_id)


@settings(deadline=None, max_examples=30)
@given(IDS, IDS, LACS, IDS, st.binary(max_size=40))
def test_every_flipped_bit_of_the_ids_is_refused_without_a_digest(
    ledger_id: int, entry_id: int, last_add_confirmed: int, length: int, payload: bytes
) -> None:
    codec = EntryCodec(ledger_id, DigestType.DUMMY, b"")
    body = codec.encode(entry_id, last_add_confirmed, length, payload)
    for index in range(16 * 8):
        flipped = bytearray(body)
        flipped[index // 8] ^= 1 << index % 8
        with pytest.raises(DigestMismatch):
            codec.decode(bytes(flipped), entry_id)


@settings(deadline=None)
@given(IDS, st.integers(0, 2**62), st.lists(PAYLOADS, max_size=9), TYPES, st.none() | st.integers(0, 8), st.data())
def test_many_entries_decode_as_each_does(
    ledger_id: int, first: int, payloads: list[bytes], digest_type: DigestType, damaged_at: int | None, data: st.DataObject
) -> None:
    codec = EntryCodec(ledger_id, digest_type, b"password")
    bodies = [codec.encode(first + at, first + at - 1, at, payload) for at, payload in enumerate(payloads)]
    if damaged_at is not None and damaged_at < len(bodies):
        damaged = bytearray(bodies[damaged_at])
        damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        bodies[damaged_at] = bytes(damaged)
    expected: list[Entry] = []
    refused = None
    for body in bodies:
        try:
            expected.append(codec.decode(body, first + len(expected)))
        except DigestMismatch as mismatch:
            refused = str(mismatch)
            break
    packed = b"".join(len(body).to_bytes(4, "big") + body for body in bodies)
    found = decode_entries(codec, packed, 0, len(packed), first, len(bodies))
    assert found.entries == expected
    assert found.payload_bytes == sum(len(entry.payload) for entry in expected)
    assert (str(found.mismatch) if found.mismatch is not None else None) == refused


@settings(deadline=None)
@given(st.binary(max_size=80), TYPES)
def test_garbage_passes_as_an_entry_only_by_its_digest(body: bytes, digest_type: DigestType) -> None:
    codec = EntryCodec(0, digest_type, b"")
    try:
        entry = codec.decode(body)
    except DigestMismatch:
        return
    assert codec.encode(entry.entry_id, entry.last_add_confirmed, entry.length, entry.payload) == body


@settings(deadline=None)
@given(st.sets(st.integers(0, 200)))
def test_lists_of_entries_round_trip(held: set[int]) -> None:
    found = decode_availability(encode_availability([range(entry_id, entry_id + 1) for entry_id in sorted(held)]))
    assert [entry_id for entry_id in range(-1, 203) if entry_id in found] == sorted(held)
    assert [entry_id for run in found.runs() for entry_id in run] == sorted(held)
    assert found.count == len(held)
