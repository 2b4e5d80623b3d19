"""Ledger metadata and parts of its stored forms."""

from __future__ import annotations

from triplicate.ledger import DigestType, EnsembleSegment, LedgerMetadata

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
