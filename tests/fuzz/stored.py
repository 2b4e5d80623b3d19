"""Fuzz targets over stored data: ledger metadata, the cluster's nodes, entries. Damage is a format error or a digest mismatch."""

from __future__ import annotations

from contextlib import suppress

from tests.fuzz.fields import Fields
from triplicate.errors import ArgumentError, BookieUnavailable, DigestMismatch, FormatError, ProtocolError
from triplicate.ledger import (
    DigestType,
    DigestVerifier,
    EnsembleSegment,
    EntryCodec,
    LedgerMetadata,
    decode_availability,
    decode_metadata,
    encode_availability,
    encode_metadata,
)
from triplicate.metadata import (
    FlatPaths,
    HierarchicalPaths,
    LongHierarchicalPaths,
    decode_cookie,
    decode_layout,
    decode_service_info,
    encode_cookie,
    encode_service_info,
    is_bookie_id,
    own_paths,
)

PASSWORD = b"mypassword"
LEDGER = 12345
_DIGESTS = tuple(DigestType)
_CODECS = {digest: EntryCodec(LEDGER, digest, PASSWORD) for digest in _DIGESTS}
_VERIFIERS = {digest: DigestVerifier(digest, PASSWORD) for digest in _DIGESTS}
_LISTED_RUNS = 2000


def metadata(data: bytes) -> None:
    """Metadata of any version that decodes encodes to the same meaning, also after a change."""
    try:
        found = decode_metadata(data)
    except FormatError:
        return
    again = encode_metadata(found)
    assert decode_metadata(again) == found
    assert encode_metadata(decode_metadata(again)) == again
    if found.is_closed:
        return
    closed = found.recovering().closed(7, 58)
    assert decode_metadata(encode_metadata(closed)) == closed


def made_metadata(data: bytes) -> None:
    """Metadata made of fields is refused by name, or round-trips."""
    fields = Fields(data)
    version = 1 + fields.byte() % 3
    size = 1 + fields.byte() % 4
    write_quorum, ack_quorum = 1 + fields.byte() % size, 1 + fields.byte() % size
    names = tuple(f"bk{index}:3181" for index in range(size))
    try:
        made = LedgerMetadata(
            ensemble_size=size,
            write_quorum=write_quorum,
            ack_quorum=write_quorum if version == 1 else ack_quorum,
            segments=tuple(EnsembleSegment(first, names) for first in sorted(fields.byte() for _ in range(1 + fields.byte() % 3))),
            digest_type=DigestType.CRC32 if version == 1 else _DIGESTS[fields.byte() % len(_DIGESTS)],
            password=b"" if version == 1 else fields.blob(),
            custom={} if version == 1 else {f"key{index}": fields.blob() for index in range(fields.byte() % 3)},
            ctime_ms=None if version == 1 else fields.integer(),
            creator_token=fields.integer() if version == 3 else None,
            format_version=version,
            credentials_stored=version > 1,
        )
        made = made.closed(fields.integer(), fields.integer()) if fields.flag() else made
    except ArgumentError:
        return
    assert decode_metadata(encode_metadata(made)) == made


def cookie(data: bytes) -> None:
    try:
        found = decode_cookie(data)
    except FormatError:
        return
    again = encode_cookie(found)
    assert encode_cookie(decode_cookie(again)) == again


def service_info(data: bytes) -> None:
    fields = Fields(data)
    bookie_id = fields.blob(24).decode("latin-1")
    is_bookie_id(bookie_id)
    try:
        found = decode_service_info(bookie_id, fields.rest())
    except FormatError:
        return
    assert all(isinstance(text, str) for end in found.endpoints for text in (end.id, end.host, end.protocol, *end.auth, *end.extensions))
    with suppress(BookieUnavailable):
        assert isinstance(found.address[1], int)
    try:
        again = encode_service_info(found)
    except ArgumentError:
        return
    # Without endpoints and properties the data are empty, which decodes as the old form.
    assert not again or decode_service_info(bookie_id, again) == found


def nodes(data: bytes) -> None:
    """The LAYOUT node, names, and paths of ledgers."""
    fields = Fields(data)
    kind = fields.byte() % 3
    rest = fields.rest()
    if kind == 0:
        try:
            decode_layout(rest)
        except FormatError:
            return
    elif kind == 1:
        text = rest.decode("utf-8", "replace")
        own_paths.decode_name(text)
        assert not text or own_paths.decode_name(own_paths.encode_name(text)) == text
    else:
        ledger_id = Fields(rest).unsigned() % 2**63
        for paths in (HierarchicalPaths(), LongHierarchicalPaths(), FlatPaths()):
            above, _, name = paths.path(ledger_id).rpartition("/")
            assert paths.ledgers(above, [name]) == [ledger_id]
            paths.ledgers(above, [rest.decode("latin-1")])
            paths.subdirectories(above, [rest.decode("latin-1")])


def listed(data: bytes) -> None:
    """A list of entries is never expanded beyond what its bytes announce."""
    try:
        found = decode_availability(data)
    except ProtocolError:
        return
    assert found.count >= len(found.groups)
    if sum(1 if group.period == 0 else (group.last - group.first) // group.period + 1 for group in found.groups) > _LISTED_RUNS:
        return
    again = decode_availability(encode_availability(found.runs()))
    assert again.count == found.count
    assert all(run.start in again and run.stop - 1 in again for run in found.runs())


def entries(data: bytes) -> None:
    fields = Fields(data)
    kind = fields.byte()
    digest = _DIGESTS[kind % len(_DIGESTS)]
    codec = _CODECS[digest]
    if kind & 128:
        entry_id, confirmed, length, payload = fields.integer(), fields.integer(), fields.integer(), fields.rest()
        body = codec.encode(entry_id, confirmed, length, payload)
        entry = codec.decode(body, entry_id)
        assert (entry.entry_id, entry.last_add_confirmed, entry.length, entry.payload) == (entry_id, confirmed, length, payload)
        assert codec.decode_lac(codec.encode_lac(confirmed)) == confirmed
        return
    body = fields.rest()
    try:
        entry = codec.decode(body)
    except DigestMismatch:
        pass  # Almost all bytes are refused; the same bytes are tried as a record below.
    else:
        assert _VERIFIERS[digest].verify(body)
        assert codec.encode(entry.entry_id, entry.last_add_confirmed, entry.length, entry.payload) == body
    try:
        codec.decode_lac(body)
    except DigestMismatch:
        return
