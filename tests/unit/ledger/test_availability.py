from __future__ import annotations

import random
import struct

import pytest

from triplicate.errors import ProtocolError
from triplicate.ledger import decode_availability, encode_availability


def groups_of(data: bytes) -> list[tuple[int, int, int, int]]:
    return list(struct.iter_unpack(">qqii", data[64:]))


def test_nothing_is_a_header_alone() -> None:
    assert encode_availability([]) == bytes(64)
    assert decode_availability(bytes(64)).count == 0
    assert 0 not in decode_availability(bytes(64))


def test_touching_and_overlapping_ranges_are_joined() -> None:
    assert groups_of(encode_availability([range(2, 4), range(4, 6), range(5, 9), range(9, 9)])) == [(2, 2, 7, 0)]


def test_a_stripe_is_one_group() -> None:
    held = [range(start, start + 2) for start in range(1, 3000, 3)]
    data = encode_availability(held)
    assert groups_of(data) == [(1, 2998, 2, 3)]
    found = decode_availability(data)
    assert list(found.runs()) == held
    assert found.count == 2000
    assert [entry_id for entry_id in range(10) if entry_id in found] == [1, 2, 4, 5, 7, 8]


def test_the_end_of_a_group_is_outside() -> None:
    found = decode_availability(encode_availability([range(3), range(10, 13)]))
    assert [entry_id for entry_id in range(-1, 15) if entry_id in found] == [0, 1, 2, 10, 11, 12]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        bytes(63),
        struct.pack(">ii56x", 1, 0),
        struct.pack(">ii56x", 0, -1),
        struct.pack(">ii56x", 0, 1),
        bytes(64) + b"x",
        struct.pack(">ii56xqqii", 0, 1, 0, 0, 0, 0),
        struct.pack(">ii56xqqii", 0, 1, 0, -3, 1, 1),
        struct.pack(">ii56xqqii", 0, 1, 0, 5, 1, 2),
        struct.pack(">ii56xqqii", 0, 1, 0, 5, 1, 0),
        struct.pack(">ii56xqqii", 0, 1, -1, -1, 1, 0),
        struct.pack(">ii56xqqiiqqii", 0, 2, 0, 0, 5, 0, 4, 4, 1, 0),
    ],
)
def test_lists_that_cannot_be_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError, match="list of"):
        decode_availability(data)


@pytest.mark.parametrize("seed", range(30))
def test_the_run_from_an_entry_is_the_first_that_is_held(seed: int) -> None:
    rng = random.Random(seed)
    if seed % 3:
        held = {entry_id for entry_id in range(60) if rng.random() < rng.choice([0.1, 0.5, 0.9])}
    else:
        size, period = rng.randint(1, 3), rng.randint(3, 7)
        held = {start + offset for start in range(rng.randint(0, 9), 50, period) for offset in range(size)}
    runs = [range(entry_id, entry_id + 1) for entry_id in sorted(held)]
    listed = decode_availability(encode_availability(runs))
    for entry_id in range(70):
        rest = sorted(one for one in held if one >= entry_id)
        run = listed.run_from(entry_id)
        if not rest:
            assert run is None
            continue
        assert run is not None
        assert run.start == rest[0]
        assert held.issuperset(run)
