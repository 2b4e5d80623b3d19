"""An entry of a key-value store's log, the state of a copy and a snapshot's content, as the first release wrote them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from triplicate.errors import FormatError
from triplicate.kv import ChangeKind, Item, Record
from triplicate.kv.core.store_records import Effect, StoreEntryHeader, decode_header, decode_record, encode_header, encode_record
from triplicate.kv.storage.snapshot_stream import StreamDecoder, encode_stream
from triplicate.kv.storage.store_stand import StoreStand, decode_state, encode_state

SAMPLE = Path(__file__).with_name("keyvalue") / "version-1.json"
STORE = bytes(range(16))
HEADER = StoreEntryHeader(STORE, 5, 9, 1_764_000_000_123, 4)
EFFECTS = [
    Effect(ChangeKind.PUT, b"new", b"\x00\xff", 1_764_000_060_123),
    Effect(ChangeKind.PUT, b"replaced", b"", 0, 1_764_000_000_500, existed=True),
    Effect(ChangeKind.DEADLINE, b"kept", None, 1_764_000_000_999, 7, existed=True),
    Effect(ChangeKind.DELETE, b"deleted", None, existed=True),
    Effect(ChangeKind.EXPIRE, b"\xff", None, 0, 1_764_000_000_000, existed=True),
]
STATE = StoreStand(STORE, 12, 5, 9, 1_764_000_000_123, 2)
MARKED = STATE._replace(diverged="this copy stands at 12, beyond the end of its log at 11")
ITEMS = [Item(b"a", Record(b"1", 3, 0)), Item(b"\xff\xff", Record(b"", 12, 1_764_000_060_123))]


def encoded() -> dict[str, str]:
    """The sample's values, by name."""
    return {
        "header": encode_header(HEADER).hex(),
        "record": encode_record(EFFECTS).hex(),
        "state": encode_state(STATE).hex(),
        "marked": encode_state(MARKED).hex(),
        "snapshot": b"".join(encode_stream(STATE, iter(ITEMS))).hex(),
    }


def stored() -> dict[str, bytes]:
    return {name: bytes.fromhex(value) for name, value in json.loads(SAMPLE.read_text(encoding="utf-8")).items()}


def test_the_sample_is_read() -> None:
    sample = stored()
    assert decode_header(sample["header"]) == HEADER
    assert decode_record(sample["record"]) == EFFECTS
    assert decode_state(sample["state"]) == STATE
    assert decode_state(sample["marked"]) == MARKED
    decoder = StreamDecoder()
    assert decoder.feed(memoryview(sample["snapshot"])) == ITEMS
    assert decoder.finish() == STATE


def test_this_release_writes_the_sample() -> None:
    assert encoded() == {name: value.hex() for name, value in stored().items()}


@pytest.mark.parametrize("name", ["header", "record", "state"])
def test_a_later_version_is_refused_by_name(name: str) -> None:
    sample = bytearray(stored()[name])
    sample[2 if name == "header" else 0] = 2
    decode = {"header": decode_header, "record": decode_record, "state": decode_state}[name]
    with pytest.raises(FormatError, match="version 2"):
        decode(bytes(sample))


def test_a_later_version_of_a_snapshot_is_refused() -> None:
    sample = bytearray(stored()["snapshot"])
    sample[4] = 2
    with pytest.raises(FormatError, match="version 2"):
        StreamDecoder().feed(memoryview(sample))
