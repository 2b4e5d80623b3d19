from __future__ import annotations

import pytest

from triplicate.errors import DigestMismatch
from triplicate.ledger import DigestType, DigestVerifier, EntryCodec, entry_header

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
    with pytest.raises(DigestMismatch, match="shorter than its 32-byte header"):
        entry_header(whole[:31])


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
