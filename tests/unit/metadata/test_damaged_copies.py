"""Records of damaged copies: joined, compared at their deletion, and refused where they are not understood."""

from __future__ import annotations

import json

import pytest

from tests.unit.metadata.stores import run
from triplicate.errors import ArgumentError, FormatError
from triplicate.metadata import ClusterMetadata, MemoryStore, MemoryTree, own_paths
from triplicate.metadata.damaged_copies import RANGES_MAX, decode_damaged, encode_damaged, joined_ranges
from triplicate.runtime import real_host


def test_damage_is_joined_and_deleted_at_its_version() -> None:
    async def body() -> None:
        host = real_host("test", seed=1)
        async with await ClusterMetadata.open(MemoryTree(MemoryStore(host.clock)), host, create=True) as metadata:
            records = metadata.damaged_copies
            assert await records.get(7) is None
            assert await records.ledger_ids() == []
            assert await records.report(7, "a", [range(5, 6)])
            assert await records.report(7, "b", [range(1)])
            assert await records.report(7, "a", [range(6, 8), range(20, 21)])
            assert not await records.report(7, "a", [range(7, 8)]), "nothing new"
            assert await records.report(12345678901234, "a", [range(1)])
            assert await records.ledger_ids() == [7, 12345678901234]
            found = await records.get(7)
            assert found is not None
            assert found.copies == {"a": (range(5, 8), range(20, 21)), "b": (range(1),)}
            data, _ = await metadata.tree.get(own_paths.damaged_ledger_path(metadata.own_root, 7))
            assert json.loads(data) == {"v": 1, "copies": {"a": [[5, 7], [20, 20]], "b": [[0, 0]]}}
            assert await records.report(7, "b", [range(3, 4)])
            assert not await records.delete(found), "it was changed since it was read"
            found = await records.get(7)
            assert found is not None
            assert await records.delete(found)
            assert await records.delete(found), "it is gone"
            assert await records.ledger_ids() == [12345678901234]
            with pytest.raises(ArgumentError):
                await records.report(7, "a/b", [range(1)])

    run(body())


def test_ranges_are_joined_where_they_are_nearest() -> None:
    assert joined_ranges([range(5, 7), range(1, 3), range(6, 9), range(3, 4), range(0)]) == (range(1, 4), range(5, 9))
    assert joined_ranges([range(10), range(11, 12), range(50, 51), range(52, 53), range(90, 99)], 3) == (
        range(12),
        range(50, 53),
        range(90, 99),
    )
    many = joined_ranges(range(3 * number, 3 * number + 1) for number in range(10 * RANGES_MAX))
    assert len(many) == RANGES_MAX
    assert (many[0].start, many[-1].stop) == (0, 30 * RANGES_MAX - 2)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"v":1}', b'{"v":1,"copies":{"a":[1]}}', b'{"v":1,"copies":[]}', b'{"v":2,"copies":{}}']
)
def test_what_is_no_record_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        decode_damaged(7, data)
    assert decode_damaged(7, encode_damaged({"a": [range(3, 5)]})) == {"a": (range(3, 5),)}
