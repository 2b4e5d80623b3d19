"""Packed ranges hold every record once and in order, within their limits."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triplicate.log import OffsetRange
from triplicate.spark.cluster.packing import PACKED_BYTES, UNKNOWN_RECORD_BYTES, pack

MIB = 1024 * 1024


@given(
    records=st.lists(st.integers(1, 50), max_size=60),
    sizes=st.lists(st.sampled_from([10, 1000, 5 * MIB, 17 * MIB]), min_size=60, max_size=60),
    open_records=st.integers(0, 40),
    most=st.integers(1, 100),
)
@settings(max_examples=examples(300), deadline=None)
def test_packed_ranges_are_all_there_in_order(records: list[int], sizes: list[int], open_records: int, most: int) -> None:
    ranges: list[OffsetRange] = []
    offset = 0
    for place, count in enumerate(records):
        ranges.append(OffsetRange(place, offset, offset, offset + count, size_bytes=sizes[place]))
        offset += count
    if open_records:
        ranges.append(OffsetRange(99, offset, offset, offset + open_records))
    groups = pack(ranges, most)
    assert [item for group in groups for item in group] == ranges
    for group in groups:
        assert group
        if len(group) > 1:
            assert sum(item.records for item in group) <= most
            known = [item.size_bytes if item.size_bytes is not None else item.records * UNKNOWN_RECORD_BYTES for item in group]
            assert sum(known) <= PACKED_BYTES
