"""A snapshot's content is decoded from chunks of any size, and content that is cut, out of order or too long is refused."""

from __future__ import annotations

import random

import pytest

from triplicate.errors import SnapshotDamaged
from triplicate.kv import Item, Record
from triplicate.kv.storage.snapshot_stream import StreamDecoder, encode_stream
from triplicate.kv.storage.store_stand import StoreStand

STATE = StoreStand(b"i" * 16, 12, 5, 9, 1000, 50)
ITEMS = [Item(b"k%02d" % number, Record(b"v" * number, number + 1, number % 3)) for number in range(50)]


def content(items: list[Item] = ITEMS, state: StoreStand = STATE) -> bytes:
    return b"".join(encode_stream(state, iter(items)))


@pytest.mark.parametrize("seed", range(5))
def test_chunks_of_any_size_give_the_items(seed: int) -> None:
    rng, rest, decoder = random.Random(seed), content(), StreamDecoder()
    found: list[Item] = []
    while rest:
        size = rng.choice([1, 2, 7, 60, 1000])
        found += decoder.feed(memoryview(rest[:size]))
        rest = rest[size:]
    assert (found, decoder.finish()) == (ITEMS, STATE)


@pytest.mark.parametrize(
    "damaged",
    [
        content()[:-1],
        content()[:100],
        content() + b"\0",
        content(ITEMS[:-1]),
        content([ITEMS[1], ITEMS[0], *ITEMS[2:]]),
        b"TKSX" + content()[4:],
    ],
)
def test_unsound_content_is_refused(damaged: bytes) -> None:
    decoder = StreamDecoder()
    with pytest.raises(SnapshotDamaged):  # noqa: PT012  one of the two calls
        decoder.feed(memoryview(damaged))
        decoder.finish()
