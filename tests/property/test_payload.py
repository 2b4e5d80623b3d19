"""Entry payloads: they round-trip in every combination of columns and codecs, and damage is never returned as data."""

from __future__ import annotations

import contextlib
import struct
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triplicate.errors import ArgumentError, CorruptionError, FormatError, LogKeyMissing, RecordTooLarge
from triplicate.ledger import Entry
from triplicate.log.core.compression import Compressor
from triplicate.log.core.encrypted_entries import EntryDecoder, encrypt_entry
from triplicate.log.core.encryption import ENTRIES, STAGED, KnownKeys, LedgerEncryptor
from triplicate.log.core.payload import ENTRY_LIMIT_BYTES, HEADER_SIZE, Producer, decode_entry, decode_header
from triplicate.log.core.payload_encoder import Columns, columns_of, encode_columns, encode_control

KEY = bytes(range(32))
NUMBERS = st.integers(-(2**63), 2**63 - 1)
BYTES = st.binary(max_size=40)
HEADER = st.tuples(st.text(max_size=5), st.one_of(st.none(), BYTES))
CODECS = ("none", "zlib", "zstd", "auto")


@st.composite
def entries(draw: st.DrawFn) -> dict[str, object]:
    count = draw(st.integers(1, 30))

    def column(item: st.SearchStrategy[object]) -> object:
        return draw(st.one_of(st.none(), st.lists(item, min_size=count, max_size=count)))

    return {
        "values": draw(st.lists(st.one_of(st.none(), BYTES), min_size=count, max_size=count)),
        "keys": column(st.one_of(st.none(), BYTES)),
        "timestamps_us": column(NUMBERS),
        "headers": column(st.lists(HEADER, max_size=3)),
        "transaction_ids": column(NUMBERS),
    }


PRODUCERS = st.builds(Producer, st.binary(min_size=16, max_size=16), st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1))


@given(
    entry=entries(),
    preamble=st.one_of(st.none(), BYTES),
    producer=st.one_of(st.none(), PRODUCERS),
    codec=st.sampled_from(CODECS),
    index=st.integers(0, 2**64 - 1),
    wall_time_us=NUMBERS,
)
@settings(max_examples=examples(200), deadline=None)
def test_payloads_round_trip(
    entry: dict[str, object], preamble: bytes | None, producer: Producer | None, codec: str, index: int, wall_time_us: int
) -> None:
    columns = columns_of(**entry)  # type: ignore[arg-type]
    encoded = encode_columns(columns, Compressor(codec), preamble=preamble, producer=producer)
    payload = encoded.payload(index, wall_time_us)
    view = decode_entry(payload)
    assert (view.header.first_index, view.header.wall_time_us, view.header.producer) == (index, wall_time_us, producer)
    assert (None if view.preamble is None else bytes(view.preamble)) == preamble
    assert view.values() == entry["values"]
    assert view.keys() == entry["keys"]
    assert (None if view.timestamps_us is None else view.timestamps_us.tolist()) == entry["timestamps_us"]
    assert (None if view.transaction_ids is None else view.transaction_ids.tolist()) == entry["transaction_ids"]
    headers = entry["headers"]
    assert view.headers() == (None if headers is None else [tuple(record) for record in headers])  # type: ignore[attr-defined]
    encryptor = LedgerEncryptor("k", KEY, ENTRIES, "log", 7, bytes(16), STAGED)
    encrypted = encrypt_entry(encryptor, encoded, index, index, wall_time_us)
    decoder = EntryDecoder("l", "log", KnownKeys({"k": KEY}))
    again = decoder.decode(Entry(7, 0, -1, len(encrypted), encrypted), 0, is_copied=False)
    assert again.values() == view.values()
    assert (again.keys(), again.headers(), again.preamble) == (view.keys(), view.headers(), view.preamble)
    assert replace(again.header, flags=view.header.flags, header_length=view.header.header_length, encryption=None) == view.header
    half = view.count // 2
    assert view.values(half) == entry["values"][half:]
    assert decode_header(payload) == view.header


@given(entry=entries(), preamble=st.one_of(st.none(), BYTES))
@settings(max_examples=examples(100), deadline=None)
def test_every_array_begins_at_a_multiple_of_eight(entry: dict[str, object], preamble: bytes | None) -> None:
    payload = encode_columns(columns_of(**entry), Compressor("none"), preamble=preamble).payload(0, 0)  # type: ignore[arg-type]
    view = decode_entry(payload)
    assert len(payload) % 8 == 0
    position = (4 + len(preamble) + 7) // 8 * 8 if preamble is not None else 0
    body = payload[HEADER_SIZE:]
    offsets = struct.unpack_from(f"<{view.count + 1}I", body, position)
    assert offsets == tuple(view.value_offsets.tolist())
    data = (position + 4 * (view.count + 1) + 7) // 8 * 8
    assert body[data : data + offsets[-1]] == bytes(view.value_data)


@given(entry=entries(), codec=st.sampled_from(CODECS), data=st.data())
@settings(max_examples=examples(300), deadline=None)
def test_damage_is_refused_or_harmless_but_never_a_crash(entry: dict[str, object], codec: str, data: st.DataObject) -> None:
    payload = bytearray(encode_columns(columns_of(**entry), Compressor(codec)).payload(0, 0))  # type: ignore[arg-type]
    bit = data.draw(st.integers(0, 8 * len(payload) - 1))
    payload[bit // 8] ^= 1 << bit % 8
    cut = data.draw(st.one_of(st.just(len(payload)), st.integers(0, len(payload))))
    with contextlib.suppress(FormatError, CorruptionError):
        view = decode_entry(bytes(payload[:cut]))
        view.values()
        view.keys()
        view.headers()


@given(
    kind=st.sampled_from(["segment", "noop", "abort"]),
    fields=st.dictionaries(st.text(max_size=5), st.one_of(st.integers(), st.text(max_size=5))),
)
@settings(max_examples=50, deadline=None)
def test_control_records_are_decoded(kind: str, fields: dict[str, object]) -> None:
    view = decode_entry(encode_control(kind, fields).payload(3, 4))
    assert view.control == {**fields, "kind": kind}
    assert (view.count, view.header.first_index, view.header.is_control, view.header.end_index) == (0, 3, True, 3)


def _payload() -> bytearray:
    return bytearray(encode_columns(columns_of([b"a" * 50]), Compressor("none")).payload(0, 0))


@pytest.mark.parametrize(
    ("at", "value", "named"),
    [
        (0, b"X", "begins with"),
        (4, b"\x02", "version 2"),
        (6, b"\x29", "header length 41"),
        (8, b"\x06", "codec 3"),
        (9, b"\x20", "0x2000"),
        (11, b"\x80", "0x80000000"),
        (8, b"\x01", "count 1 with flags 0x1"),
        (36, b"\x01", "reserved field 1"),
    ],
)
def test_unknown_formats_are_named(at: int, value: bytes, named: str) -> None:
    payload = _payload()
    payload[at : at + 1] = value
    with pytest.raises(FormatError, match=named):
        decode_entry(bytes(payload))


def test_a_control_record_of_unknown_kind_is_named() -> None:
    payload = encode_control("noop", {}).payload(0, 0).replace(b"noop", b"boop")
    with pytest.raises(FormatError, match="boop"):
        decode_entry(payload)
    with pytest.raises(ArgumentError, match="boop"):
        encode_control("boop", {})


def test_an_entry_holds_at_most_four_mebibytes() -> None:
    room = ENTRY_LIMIT_BYTES - 72 - 8
    for codec in CODECS:
        encoded = encode_columns(columns_of([b"x" * room]), Compressor(codec))
        assert decode_entry(encoded.payload(0, 0)).values() == [b"x" * room]
        with pytest.raises(RecordTooLarge):
            encode_columns(columns_of([b"x" * (room + 1)]), Compressor(codec))


def test_a_body_that_unpacks_beyond_its_stated_size_is_refused() -> None:
    for codec in ("zlib", "zstd"):
        payload = bytearray(encode_columns(columns_of([b"x" * 1_000_000]), Compressor(codec)).payload(0, 0))
        assert len(payload) < 10_000
        struct.pack_into("<I", payload, 32, 1000)
        with pytest.raises(CorruptionError):
            decode_entry(bytes(payload))
        struct.pack_into("<I", payload, 32, ENTRY_LIMIT_BYTES)
        with pytest.raises(FormatError, match="limit"):
            decode_entry(bytes(payload))


def test_descending_offsets_are_refused_before_use() -> None:
    payload = bytearray(encode_columns(columns_of([b"a", b"b", b"c"]), Compressor("none")).payload(0, 0))
    struct.pack_into("<I", payload, HEADER_SIZE + 4, 9)
    with pytest.raises(CorruptionError, match="offsets"):
        decode_entry(bytes(payload))


def test_columns_that_contradict_their_count_are_refused() -> None:
    compressor = Compressor("none")
    offsets = struct.pack("<2I", 0, 1)
    for columns in (
        Columns(2, offsets, b"a"),
        Columns(1, offsets, b"ab"),
        Columns(1, offsets, b"a", timestamps_us=b"1234567"),
        Columns(1, offsets, b"a", key_offsets=offsets),
        Columns(1, offsets, b"a", value_validity=b"12"),
    ):
        with pytest.raises(ArgumentError):
            encode_columns(columns, compressor)
    with pytest.raises(ArgumentError, match="keys has 2 items for 1 records"):
        columns_of([b"a"], keys=[b"a", b"b"])
    with pytest.raises(ArgumentError, match="unknown compression"):
        Compressor("lzma")


@given(
    entry=entries(),
    producer=st.one_of(st.none(), PRODUCERS),
    place=st.integers(0, 2**32),
    damage=st.lists(st.tuples(st.integers(0, 2**16), st.integers(1, 255)), min_size=1, max_size=3, unique_by=lambda item: item[0]),
    cut=st.one_of(st.none(), st.integers(0, 200)),
)
@settings(max_examples=examples(200), deadline=None)
def test_a_changed_encrypted_entry_is_never_returned_as_data(
    entry: dict[str, object], producer: Producer | None, place: int, damage: list[tuple[int, int]], cut: int | None
) -> None:
    encoded = encode_columns(columns_of(**entry), Compressor("auto"), producer=producer)  # type: ignore[arg-type]
    payload = encrypt_entry(LedgerEncryptor("k", KEY, ENTRIES, "log", 7, bytes(16), STAGED), encoded, place, place, 1)
    changed = bytearray(payload)
    for position, mask in damage:
        changed[position % len(changed)] ^= mask
    if cut is not None:
        del changed[max(0, len(changed) - cut) :]
    if changed == payload:
        return
    with pytest.raises((FormatError, CorruptionError, LogKeyMissing)):
        EntryDecoder("l", "log", KnownKeys({"k": KEY})).decode(Entry(7, 0, -1, len(changed), bytes(changed)), 0, is_copied=False)
