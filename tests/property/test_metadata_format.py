from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triplicate.errors import FormatError
from triplicate.ledger import DigestType, EnsembleSegment, LedgerMetadata, LedgerState, decode_metadata, encode_metadata

BOOKIES = st.from_regex(r"[a-zA-Z0-9:._-]{1,12}", fullmatch=True)
INT64 = st.integers(-(2**63), 2**63 - 1)


def varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


# Fields of numbers that ledger metadata does not have: a number, or a string of bytes.
UNKNOWN = st.lists(
    st.one_of(
        st.builds(lambda number, value: varint(number << 3) + varint(value), st.integers(13, 500), st.integers(0, 2**63)),
        st.builds(lambda number, value: varint(number << 3 | 2) + varint(len(value)) + value, st.integers(13, 500), st.binary(max_size=9)),
    ),
    max_size=3,
).map(b"".join)


@st.composite
def metadata_values(draw: st.DrawFn, unknown: st.SearchStrategy[bytes] = UNKNOWN) -> LedgerMetadata:
    ensemble_size = draw(st.integers(1, 5))
    write_quorum = draw(st.integers(1, ensemble_size))
    starts = [0, *sorted(draw(st.sets(st.integers(1, 2**40), max_size=3)))]
    state = draw(st.sampled_from(LedgerState))
    closed = state is LedgerState.CLOSED
    stored = draw(st.booleans())
    return LedgerMetadata(
        ensemble_size=ensemble_size,
        write_quorum=write_quorum,
        ack_quorum=draw(st.integers(1, write_quorum)),
        segments=tuple(EnsembleSegment(start, tuple(draw(BOOKIES) for _ in range(ensemble_size)), draw(unknown)) for start in starts),
        state=state,
        last_entry_id=draw(st.integers(-1, 2**63 - 1)) if closed else -1,
        length=draw(st.integers(0, 2**63 - 1)) if closed else 0,
        digest_type=draw(st.sampled_from(DigestType)) if stored else DigestType.CRC32,
        password=draw(st.binary(max_size=20)) if stored else b"",
        custom=draw(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=8), st.binary(max_size=8), max_size=3)),
        ctime_ms=draw(st.none() | INT64),
        creator_token=draw(st.none() | INT64),
        credentials_stored=stored,
        unknown_fields=draw(unknown),
    )


@settings(deadline=None)
@given(metadata_values())
def test_version_3_round_trips_with_unknown_fields(metadata: LedgerMetadata) -> None:
    data = encode_metadata(metadata)
    assert decode_metadata(data) == metadata
    assert encode_metadata(decode_metadata(data)) == data


@settings(deadline=None)
@given(metadata_values(unknown=st.just(b"")))
def test_version_2_round_trips_but_for_the_creator_token(metadata: LedgerMetadata) -> None:
    found = decode_metadata(encode_metadata(replace(metadata, format_version=2)))
    assert found == replace(metadata, format_version=2, creator_token=None)


@settings(deadline=None)
@given(metadata_values(unknown=st.just(b"")))
def test_version_1_round_trips_its_fields(metadata: LedgerMetadata) -> None:
    old = replace(
        metadata,
        ack_quorum=metadata.write_quorum,
        digest_type=DigestType.CRC32,
        password=b"",
        custom={},
        ctime_ms=None,
        creator_token=None,
        credentials_stored=False,
        format_version=1,
    )
    assert decode_metadata(encode_metadata(old)) == old


@settings(deadline=None)
@given(metadata_values(), st.integers(0, 2**40), BOOKIES)
def test_a_change_of_ensemble_keeps_everything_else(metadata: LedgerMetadata, step: int, bookie_id: str) -> None:
    start = metadata.last_segment.first_entry_id + step
    ensemble = (bookie_id,) * metadata.ensemble_size
    changed = decode_metadata(encode_metadata(decode_metadata(encode_metadata(metadata)).with_ensemble(start, ensemble)))
    assert changed.ensemble_of(start) == ensemble
    assert len(changed.segments) == len(metadata.segments) + (1 if step else 0)
    assert replace(changed, segments=metadata.segments) == metadata


@settings(deadline=None, max_examples=examples(300))
@given(st.sampled_from([b"1", b"2", b"3"]), st.binary(max_size=60))
def test_garbage_is_refused_or_can_be_written_again(version: bytes, body: bytes) -> None:
    try:
        metadata = decode_metadata(b"BookieMetadataFormatVersion\t" + version + b"\n" + body)
    except FormatError:
        return
    assert decode_metadata(encode_metadata(metadata)) == metadata
