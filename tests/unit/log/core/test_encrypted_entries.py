"""Encrypted entries: what is authenticated, and where an entry may be found."""

from __future__ import annotations

import pytest

from tests.unit.log.encryption_rig import KEY, encryptor, entry_of
from triplicate.errors import EntryNotAuthentic, FormatError, LogKeyMissing
from triplicate.log import EntryView, KnownKeys, Producer, decode_entry
from triplicate.log.core.compression import Compressor
from triplicate.log.core.encrypted_entries import EntryDecoder, encrypt_entry
from triplicate.log.core.encryption import STAGED, LedgerEncryptor
from triplicate.log.core.payload import CONTROL, ENTRY_LIMIT_BYTES, decode_header
from triplicate.log.core.payload_encoder import EncodedEntry, columns_of, encode_columns, encode_control
from triplicate.log.core.rewrite_plan import with_first_index

LOG_ID = "ab" * 16
TIME_US = 1_700_000_000_000_000
FIRST = 1000
"""Offset of the first record of the segment."""


def records(*values: bytes) -> EncodedEntry:
    return encode_columns(columns_of(values or (b"one", b"two")), Compressor("none"))


def decoder() -> EntryDecoder:
    return EntryDecoder("l", LOG_ID, KnownKeys({"new": KEY}))


def written(encoded: EncodedEntry | None = None, index: int = 7, maker: LedgerEncryptor | None = None) -> bytes:
    """An entry of the log's writer at an index of its segment."""
    return encrypt_entry(maker or encryptor(), encoded or records(), index, FIRST + index, TIME_US)


def staged(index: int, ledger_id: int = 5) -> bytes:
    return encrypt_entry(encryptor(ledger_id, origin=STAGED), records(), index, index, TIME_US)


def decoded(
    payload: bytes, *, is_copied: bool = False, ledger_id: int = 5, first: int = FIRST, by: EntryDecoder | None = None
) -> EntryView:
    return (by or decoder()).decode(entry_of(payload, ledger_id), first, is_copied=is_copied)


def test_an_entry_decrypts_to_what_was_encoded() -> None:
    producer = Producer(b"p" * 16, 3, 4)
    encoded = encode_columns(columns_of([b"one", None] * 200), Compressor("zstd"), preamble=b"preamble", producer=producer)
    view = decoded(written(encoded))
    assert (view.values(), view.header.producer, bytes(view.preamble or b"")) == ([b"one", None] * 200, producer, b"preamble")
    assert (view.header.first_index, view.header.wall_time_us) == (7, TIME_US)


def test_an_entry_of_the_greatest_size_can_be_encrypted() -> None:
    encoded = records(b"x" * (ENTRY_LIMIT_BYTES - 256))
    assert decoded(written(encoded)).values() == [b"x" * (ENTRY_LIMIT_BYTES - 256)]


def test_every_bit_of_the_header_but_the_first_index_is_authenticated() -> None:
    producer = Producer(b"p" * 16, 3, 4)
    payload = written(encode_columns(columns_of([b"one"] * 50), Compressor("zstd"), producer=producer))
    length = decode_header(payload).header_length
    for place in [*range(16), *range(24, length)]:
        for bit in (1, 16):
            changed = bytearray(payload)
            changed[place] ^= bit
            with pytest.raises((EntryNotAuthentic, FormatError, LogKeyMissing)):
                decoded(bytes(changed))


@pytest.mark.parametrize("place", [12, 24, 25, 48])
def test_a_changed_count_time_or_producer_is_noticed(place: int) -> None:
    payload = bytearray(written(encode_columns(columns_of([b"one"] * 50), Compressor("none"), producer=Producer(b"p" * 16, 3, 4))))
    payload[place] ^= 1
    with pytest.raises(EntryNotAuthentic):
        decoded(bytes(payload))


def test_an_entry_that_was_moved_within_its_segment_is_refused() -> None:
    with pytest.raises(EntryNotAuthentic, match="was moved: it was written at offset 1007 and is found at 1009"):
        decoded(with_first_index(written(), 9))
    with pytest.raises(EntryNotAuthentic, match="was moved"):
        decoded(written(), first=FIRST + 1)


def test_an_entry_of_another_ledger_is_refused_unless_the_ledger_is_a_copy() -> None:
    with pytest.raises(EntryNotAuthentic, match="was moved: it was written to ledger 5"):
        decoded(written(), ledger_id=6)
    assert decoded(with_first_index(written(), 17), ledger_id=6, first=FIRST - 10, is_copied=True).count == 2
    with pytest.raises(EntryNotAuthentic, match="was moved"):
        decoded(with_first_index(written(), 17), ledger_id=6, first=FIRST, is_copied=True)


def test_an_entry_of_a_staging_ledger_belongs_to_its_index() -> None:
    assert decoded(staged(4)).count == 2
    with pytest.raises(EntryNotAuthentic, match="was moved: it was written at index 4 and is found at 2"):
        decoded(with_first_index(staged(4), 2))
    with pytest.raises(EntryNotAuthentic, match="was moved"):
        decoded(staged(4), ledger_id=6)


def test_entries_of_joined_staging_ledgers_keep_their_order() -> None:
    by = decoder()
    for payload in (with_first_index(staged(0), 10), with_first_index(staged(2), 12), with_first_index(staged(0, 8), 14)):
        assert decoded(payload, ledger_id=9, is_copied=True, by=by).count == 2
    with pytest.raises(EntryNotAuthentic, match="was moved"):
        decoded(with_first_index(staged(4, 8), 16), ledger_id=9, is_copied=True, by=by)


def test_plain_text_is_refused_in_an_encrypted_log() -> None:
    with pytest.raises(EntryNotAuthentic, match="log 'l': entry 3 of ledger 5 is in plain text"):
        decoded(records().payload(7, TIME_US))


def test_an_encrypted_entry_is_refused_in_a_log_that_is_not_encrypted() -> None:
    with pytest.raises(FormatError, match="encrypted with key 'new'"):
        EntryDecoder("l", LOG_ID, None).decode(entry_of(written()), FIRST, is_copied=False)
    with pytest.raises(FormatError, match="encrypted with key 'new'"):
        decode_entry(written())


@pytest.mark.parametrize("kind", ["segment", "noop", "abort"])
def test_a_control_record_says_its_kind_in_clear_and_nothing_else(kind: str) -> None:
    payload = written(encode_control(kind, {"hidden": "secret"}))
    assert b"secret" not in payload
    block = decode_header(payload).encryption
    assert block is not None
    assert block.control == 1 + ("segment", "noop", "abort").index(kind)
    assert decoded(payload).control == {"kind": kind, "hidden": "secret"}


def test_a_kind_that_contradicts_the_flags_is_refused() -> None:
    payload = bytearray(written())
    payload[8] |= CONTROL
    with pytest.raises(FormatError):
        decode_header(bytes(payload))
