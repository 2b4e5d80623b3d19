"""The three stored formats of ledger metadata: 1 (lines of text), 2 (protobuf text), 3 (protobuf after its length).

Each begins with the line ``BookieMetadataFormatVersion<TAB>version``. All are read; each is written back in the version found.
Source: BookKeeper `LedgerMetadataSerDe`.
"""

from __future__ import annotations

from google.protobuf import text_format
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from triplicate.errors import ArgumentError, FormatError
from triplicate.ledger.entry import DigestType
from triplicate.ledger.ledger_metadata import EnsembleSegment, LedgerMetadata, LedgerState
from triplicate.ledger.ledger_metadata_pb2 import LedgerMetadataFormat

_HEADER = b"BookieMetadataFormatVersion\t"
_VERSION_1_IN_RECOVERY = -102
_KNOWN_FIELDS = frozenset(field.number for field in LedgerMetadataFormat.DESCRIPTOR.fields)


def encode_metadata(metadata: LedgerMetadata) -> bytes:
    """The bytes to store, in the version that `metadata.format_version` says.

    Raises:
        ArgumentError: the metadata holds something that its format version cannot carry.
    """
    header = _HEADER + b"%d\n" % metadata.format_version
    if metadata.format_version == 1:
        return header + _encode_lines(metadata)
    message = _to_message(metadata)
    if metadata.format_version == 2:
        if metadata.unknown_fields or any(segment.unknown_fields for segment in metadata.segments):
            raise ArgumentError("unknown_fields cannot be written in metadata format version 2, which is text; use version 3")
        message.ClearField("cToken")
        return header + text_format.MessageToString(message, as_utf8=False).encode("ascii")
    body = message.SerializeToString(deterministic=True)
    return header + _encode_varint(len(body)) + body


def decode_metadata(data: bytes) -> LedgerMetadata:
    """Metadata of any of the three versions.

    Raises:
        FormatError: another version, or bytes that do not have the form of their version.
    """
    if not data.startswith(_HEADER):
        raise FormatError(f"ledger metadata begins with {data[:16]!r} instead of {_HEADER!r}: not ledger metadata")
    version_text, newline, body = data[len(_HEADER) :].partition(b"\n")
    if not newline or not 1 <= len(version_text) <= 10 or not version_text.isdigit():
        raise FormatError(f"ledger metadata: the format version {version_text[:16]!r} is not a number of at most 10 digits")
    version = int(version_text)
    if version not in (1, 2, 3):
        raise FormatError(f"ledger metadata has format version {version}; this release reads 1 to 3: upgrade it")
    try:
        if version == 1:
            return _decode_lines(body)
        return _from_message(_parse_text(body) if version == 2 else _parse_delimited(body), version)
    except (ArgumentError, DecodeError, text_format.ParseError, UnicodeError, ValueError, RecursionError) as error:
        raise FormatError(f"ledger metadata of format version {version} is damaged: {error}") from error


# Version 1: write quorum, ensemble size, length, one line per segment; then, unless the ledger is open, a line with its last entry id, or
# with -102 in recovery.


def _encode_lines(metadata: LedgerMetadata) -> bytes:
    if metadata.ack_quorum != metadata.write_quorum:
        raise ArgumentError("ack_quorum must equal write_quorum in metadata format version 1")
    if metadata.credentials_stored or metadata.custom or metadata.ctime_ms is not None or metadata.unknown_fields:
        raise ArgumentError("metadata format version 1 carries no digest type, password, custom metadata or creation time: use version 3")
    lines = [str(metadata.write_quorum), str(metadata.ensemble_size), str(metadata.length)]
    lines.extend("\t".join((str(segment.first_entry_id), *segment.ensemble)) for segment in metadata.segments)
    if metadata.state is LedgerState.CLOSED:
        lines.append(f"{metadata.last_entry_id}\tCLOSED")
    elif metadata.state is LedgerState.IN_RECOVERY:
        lines.append(f"{_VERSION_1_IN_RECOVERY}\tCLOSED")
    return "\n".join(lines).encode()


def _decode_lines(body: bytes) -> LedgerMetadata:
    lines = body.decode().rstrip("\n").split("\n")
    if len(lines) < 4:
        raise ValueError(f"{len(lines)} lines instead of at least 4")
    write_quorum, ensemble_size, length = (int(line) for line in lines[:3])
    state, last_entry_id = LedgerState.OPEN, -1
    last = lines[-1].split("\t")
    if len(last) == 2 and last[1] == "CLOSED":
        lines.pop()
        last_entry_id = int(last[0])
        state = LedgerState.CLOSED
        if last_entry_id == _VERSION_1_IN_RECOVERY:
            state, last_entry_id = LedgerState.IN_RECOVERY, -1
    segments = tuple(EnsembleSegment(int(first), tuple(ensemble)) for first, *ensemble in (line.split("\t") for line in lines[3:]))
    return LedgerMetadata(
        ensemble_size=ensemble_size,
        write_quorum=write_quorum,
        ack_quorum=write_quorum,
        segments=segments,
        state=state,
        last_entry_id=last_entry_id,
        length=length if state is LedgerState.CLOSED else 0,
        digest_type=DigestType.CRC32,
        format_version=1,
        credentials_stored=False,
    )


# Versions 2 and 3: one protobuf message, as text or as bytes after their number.


def _to_message(metadata: LedgerMetadata) -> LedgerMetadataFormat:
    message = LedgerMetadataFormat(
        quorumSize=metadata.write_quorum,
        ensembleSize=metadata.ensemble_size,
        length=metadata.length,
        lastEntryId=metadata.last_entry_id,
        state=metadata.state.name,
        ackQuorumSize=metadata.ack_quorum,
    )
    for segment in metadata.segments:
        added = message.segment.add(firstEntryId=segment.first_entry_id, ensembleMember=segment.ensemble)
        added.MergeFromString(segment.unknown_fields)
    if metadata.credentials_stored:
        message.MergeFrom(LedgerMetadataFormat(digestType=metadata.digest_type.name, password=metadata.password))
    if metadata.ctime_ms is not None:
        message.ctime = metadata.ctime_ms
    # In the order found: an update must not reorder the fields of another client.
    for key, value in metadata.custom.items():
        message.customMetadata.add(key=key, value=value)
    if metadata.creator_token is not None:
        message.cToken = metadata.creator_token
    message.MergeFromString(metadata.unknown_fields)
    return message


def _from_message(message: LedgerMetadataFormat, version: int) -> LedgerMetadata:
    if not message.IsInitialized():
        raise ValueError("a required field is missing (quorumSize, ensembleSize, length, state, or a segment's firstEntryId)")
    found = UnknownFieldSet(message)
    for unknown in (found[index] for index in range(len(found))):
        if unknown.field_number in _KNOWN_FIELDS:
            name = LedgerMetadataFormat.DESCRIPTOR.fields_by_number[unknown.field_number].name
            raise ValueError(f"{name} has a value that this release does not know ({unknown.data!r}): upgrade it")
    if message.HasField("digestType") != message.HasField("password"):
        raise ValueError("digestType and password must both be there or both be absent")
    state = LedgerState(message.state)
    closed = state is LedgerState.CLOSED
    return LedgerMetadata(
        ensemble_size=message.ensembleSize,
        write_quorum=message.quorumSize,
        ack_quorum=message.ackQuorumSize if message.HasField("ackQuorumSize") else message.quorumSize,
        segments=tuple(
            EnsembleSegment(segment.firstEntryId, tuple(map(_text, segment.ensembleMember)), _unknown_bytes(segment))
            for segment in message.segment
        ),
        state=state,
        # An absent lastEntryId reads as 0, the protobuf default, as BookKeeper reads it.
        last_entry_id=message.lastEntryId if closed else -1,
        length=message.length if closed else 0,
        digest_type=DigestType(message.digestType),
        password=message.password,
        custom={_text(pair.key): pair.value for pair in message.customMetadata},
        ctime_ms=message.ctime if message.HasField("ctime") else None,
        creator_token=message.cToken if message.HasField("cToken") else None,
        format_version=version,
        credentials_stored=message.HasField("password"),
        unknown_fields=_unknown_bytes(message),
    )


def _text(value: str) -> str:
    """A string field; the protobuf library hands out plain bytes where a version-2 string is not UTF-8."""
    if not isinstance(value, str):
        raise ValueError(f"the text {value!r} is not UTF-8")
    return value


def _unknown_bytes(message: Message) -> bytes:
    """The bytes of a message without its known fields."""
    rest = type(message)()
    rest.CopyFrom(message)
    for field in message.DESCRIPTOR.fields:
        rest.ClearField(field.name)
    return rest.SerializePartialToString()


def _parse_text(body: bytes) -> LedgerMetadataFormat:
    message = LedgerMetadataFormat()
    text_format.Parse(body.decode(), message)
    return message


def _parse_delimited(body: bytes) -> LedgerMetadataFormat:
    size, start = _decode_varint(body)
    if size != len(body) - start:
        raise ValueError(f"the length before the message is {size} bytes, but {len(body) - start} bytes follow")
    message = LedgerMetadataFormat()
    message.ParseFromString(body[start:])
    return message


def _encode_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _decode_varint(data: bytes) -> tuple[int, int]:
    """(value, bytes read)."""
    value = 0
    for index, byte in enumerate(data[:5]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, index + 1
    raise ValueError("the length before the message is not a number of at most 5 bytes")
