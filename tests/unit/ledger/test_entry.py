from __future__ import annotations

import struct

import pytest

from triplicate.errors import DigestMismatch
from triplicate.ledger import DigestType, DigestVerifier, Entry, EntryCodec, decode_entries

TYPES = list(DigestType)


@pytest.mark.parametrize("digest_type", TYPES)
def test_overhead_is_header_and_digest(digest_type: DigestType) -> None:
    codec = EntryCodec(1, digest_type, b"pw")
    assert codec.overhead == 32 + {"CRC32": 8, "HMAC": 20, "CRC32C": 4, "DUMMY": 0}[digest_type.name]
    assert len(codec.encode(0, -1, 3, b"abc")) == codec.overhead + 3


@pytest.mark.parametrize("digest_type", TYPES)
def test_prefix_stands_before_the_entry(digest_type: DigestType) -> None:
    codec = EntryCodec(1, digest_type, b"pw")
    assert codec.encode(0, -1, 3, b"abc", b"head") == b"head" + codec.encode(0, -1, 3, b"abc")


@pytest.mark.parametrize("digest_type", TYPES)
def test_another_ledger_or_entry_is_refused_by_name(digest_type: DigestType) -> None:
    body = EntryCodec(5, digest_type, b"").encode(7, 6, 0, b"")
    with pytest.raises(DigestMismatch, match=r"ledger 6, entry 7: the bytes are an entry of ledger 5; read another replica"):
        EntryCodec(6, digest_type, b"").decode(body, 7)
    with pytest.raises(DigestMismatch, match=r"ledger 5, entry 8: the bytes are entry 7; read another replica"):
        EntryCodec(5, digest_type, b"").decode(body, 8)


def test_the_last_entry_is_accepted_under_any_id() -> None:
    codec = EntryCodec(5, DigestType.CRC32C, b"")
    assert codec.decode(codec.encode(7, 6, 0, b"")).entry_id == 7


def test_a_damaged_entry_is_refused_with_digest_named() -> None:
    codec = EntryCodec(5, DigestType.CRC32, b"")
    body = bytearray(codec.encode(7, 6, 3, b"abc"))
    body[-1] ^= 1
    with pytest.raises(DigestMismatch, match=r"ledger 5, entry 7: the CRC32 digest does not match"):
        codec.decode(bytes(body), 7)
    with pytest.raises(DigestMismatch, match=r"ledger 5, last entry: "):
        codec.decode(bytes(body))


@pytest.mark.parametrize("digest_type", TYPES)
def test_entries_cut_short_are_refused(digest_type: DigestType) -> None:
    codec = EntryCodec(5, digest_type, b"")
    whole = codec.encode(7, 6, 0, b"")
    for size in range(len(whole)):
        with pytest.raises(DigestMismatch):
            codec.decode(whole[:size], 7)
        assert not DigestVerifier(digest_type, b"").verify(whole[:size])
        assert not DigestVerifier(digest_type, b"").verify_all([whole, whole[:size]])


def test_a_wrong_password_is_refused_by_hmac_only() -> None:
    for digest_type in TYPES:
        body = EntryCodec(5, digest_type, b"right").encode(7, 6, 3, b"abc")
        assert DigestVerifier(digest_type, b"right").verify(body)
        assert DigestVerifier(digest_type, b"wrong").verify(body) is (digest_type is not DigestType.HMAC)


@pytest.mark.parametrize("digest_type", TYPES)
def test_views_decode_as_bytes_do(digest_type: DigestType) -> None:
    codec = EntryCodec(5, digest_type, b"")
    body = codec.encode(7, 6, 3, b"abc")
    entry = codec.decode(memoryview(b"__" + body + b"__")[2:-2], 7)
    assert entry == codec.decode(body)
    assert isinstance(entry.payload, bytes)


SIZES = {"one": [30] * 6, "many": [3, 0, 700, 7, 7, 7], "last": [1000, 1000, 1000, 1000, 1000, 20], "pairs": [5, 5, 9, 9, 5, 5]}
FIRST = 40


def packed(bodies: list[bytes]) -> bytes:
    return b"".join(struct.pack(">I", len(body)) + body for body in bodies)


def bodies_of(codec: EntryCodec, sizes: list[int]) -> list[bytes]:
    return [codec.encode(FIRST + at, FIRST + at - 1, 9 * at, bytes([at]) * size) for at, size in enumerate(sizes)]


def changed(body: bytes, at: int) -> bytes:
    return body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]


def one_by_one(codec: EntryCodec, bodies: list[bytes]) -> tuple[list[Entry], str]:
    entries: list[Entry] = []
    for body in bodies:
        try:
            entries.append(codec.decode(body, FIRST + len(entries)))
        except DigestMismatch as mismatch:
            return entries, str(mismatch)
    return entries, ""


def all_at_once(codec: EntryCodec, bodies: list[bytes], most: int = 100) -> tuple[list[Entry], str]:
    """Between other bytes, which must not matter."""
    data = packed(bodies)
    found = decode_entries(codec, b"before" + data + b"behind", 6, 6 + len(data), FIRST, most)
    assert found.payload_bytes == sum(len(entry.payload) for entry in found.entries)
    return found.entries, str(found.mismatch or "")


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("digest_type", TYPES)
def test_many_entries_decode_as_each_does(digest_type: DigestType, sizes: list[int]) -> None:
    codec = EntryCodec(5, digest_type, b"pw")
    bodies = bodies_of(codec, sizes)
    assert all_at_once(codec, bodies) == one_by_one(codec, bodies)
    assert len(all_at_once(codec, bodies)[0]) == 6
    for most in range(6):
        assert all_at_once(codec, bodies, most) == one_by_one(codec, bodies[:most])
    assert all_at_once(codec, []) == ([], "")


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("digest_type", TYPES)
def test_many_entries_end_before_the_first_that_is_refused(digest_type: DigestType, sizes: list[int]) -> None:
    codec = EntryCodec(5, digest_type, b"pw")
    good = bodies_of(codec, sizes)
    for at in range(6):
        payload = bytes([at]) * sizes[at]
        refused = [
            EntryCodec(6, digest_type, b"pw").encode(FIRST + at, FIRST + at - 1, 9 * at, payload),
            codec.encode(FIRST + at + 1, FIRST + at - 1, 9 * at, payload),
            codec.encode(FIRST, -1, 9 * at, payload) if at else b"",
            good[at][: codec.overhead - 1],
            b"",
        ]
        if digest_type is not DigestType.DUMMY:
            refused += [changed(good[at], 16), changed(good[at], 32), changed(good[at], len(good[at]) - 1), good[at] + b"x"]
        for body in refused:
            found = all_at_once(codec, [*good[:at], body, *good[at + 1 :]])
            assert found == one_by_one(codec, [*good[:at], body])
            assert len(found[0]) == at
            assert f"ledger 5, entry {FIRST + at}: " in found[1]


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("digest_type", TYPES)
def test_many_entries_cut_short_give_those_that_are_whole(digest_type: DigestType, sizes: list[int]) -> None:
    codec = EntryCodec(5, digest_type, b"pw")
    bodies = bodies_of(codec, sizes)
    data = packed(bodies)
    ends = [len(packed(bodies[:count])) for count in range(7)]
    for end in range(len(data)):
        # The bytes that were cut off are there, but behind the end.
        entries, _, mismatch = decode_entries(codec, data, 0, end, FIRST, 100)
        whole = max(count for count in range(7) if ends[count] <= end)
        assert entries == one_by_one(codec, bodies[:whole])[0]
        assert (mismatch is None) is (ends[whole] == end)
        if mismatch is not None:
            assert f"entry {FIRST + whole}: its bytes end in the middle" in str(mismatch)


def test_explicit_lac_records_that_cannot_be_are_refused() -> None:
    codec = EntryCodec(5, DigestType.CRC32C, b"")
    record = codec.encode_lac(41)
    assert codec.decode_lac(record) == 41
    for size in range(len(record)):
        with pytest.raises(DigestMismatch, match="record of ledger 5"):
            codec.decode_lac(record[:size])
    with pytest.raises(DigestMismatch, match="digest does not match"):
        codec.decode_lac(record[:-1] + bytes([record[-1] ^ 1]))
    with pytest.raises(DigestMismatch, match="belong to ledger 5"):
        EntryCodec(6, DigestType.CRC32C, b"").decode_lac(record)
