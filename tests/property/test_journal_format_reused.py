"""A reused journal file, over any content: only groups of its present life are found, and its end is classified correctly."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triplicate.bookie.core.file_header import HEADER_BYTES
from triplicate.bookie.core.journal_format import ALIGNMENT, END_BLOCK, GroupScanner, GroupType, JournalGroup, encode_group

NUMBER = 9
BLOCKS = 24
SIZE = HEADER_BYTES + BLOCKS * ALIGNMENT
SECTOR_BYTES = 512

BODIES = st.binary(max_size=40).map(lambda body: body * 150)
OLD_GROUPS = st.tuples(st.just("group"), st.integers(1, NUMBER - 1), st.integers(1, 40), BODIES)
OLD_BYTES = st.tuples(st.just("bytes"), st.just(0), st.just(0), st.binary(min_size=1, max_size=64).map(lambda part: (part * 8200)[:8192]))
OLD = st.lists(st.one_of(OLD_GROUPS, OLD_BYTES), max_size=12)


def group_bytes(number: int, sequence: int, body: bytes) -> bytes:
    return b"".join(bytes(part) for part in encode_group(GroupType.ENTRIES, number, sequence, 1, [body]))


def old_content(parts: list[tuple[str, int, int, bytes]]) -> bytearray:
    """Earlier contents of the file, from its first block to its last."""
    data = bytearray(HEADER_BYTES)
    for kind, number, sequence, body in parts:
        data += group_bytes(number, sequence, body) if kind == "group" else body
    del data[SIZE:]
    return data + bytes(SIZE - len(data))


def written(data: bytearray, bodies: list[bytes], first: int) -> tuple[list[tuple[int, bytes, list[bytes]]], list[bytes]]:
    """Each write as the journal does it: (offset, bytes); and the bodies that fit into the file."""
    writes: list[tuple[int, bytes, list[bytes]]] = [(HEADER_BYTES, END_BLOCK, [])]
    offset, fitted = HEADER_BYTES, []
    for sequence, body in enumerate(bodies, first):
        group = group_bytes(NUMBER, sequence, body)
        end = offset + len(group)
        if end > len(data):
            break
        fitted.append(body)
        writes.append((offset, group + (END_BLOCK if end < len(data) else b""), list(fitted)))
        offset = end
    return writes, fitted


def scan(data: bytes, first: int) -> tuple[list[JournalGroup], GroupScanner]:
    scanner = GroupScanner(lambda size, offset: data[offset : offset + size], len(data), "a.journal", NUMBER, reused=True)
    return list(scanner.groups(first - 1)), scanner


@settings(deadline=None, max_examples=examples(150))
@given(OLD, st.lists(BODIES, max_size=10), st.integers(1, 50))
def test_only_groups_of_this_life_are_found_in_a_reused_file(
    old: list[tuple[str, int, int, bytes]], bodies: list[bytes], first: int
) -> None:
    data = old_content(old)
    writes, fitted = written(data, bodies, first)
    for offset, part, _ in writes:
        data[offset : offset + len(part)] = part
    groups, scanner = scan(bytes(data), first)
    assert [group.body for group in groups] == fitted
    assert {group.file_number for group in groups} <= {NUMBER}
    assert scanner.torn is None, "earlier contents of the file are not reported as torn"


@settings(deadline=None, max_examples=examples(150))
@given(OLD, st.lists(BODIES, min_size=1, max_size=10), st.integers(1, 50), st.data())
def test_a_torn_write_over_old_bytes_is_the_last_group_or_none(
    old: list[tuple[str, int, int, bytes]], bodies: list[bytes], first: int, draw: st.DataObject
) -> None:
    data = old_content(old)
    writes, fitted = written(data, bodies, first)
    for offset, part, _ in writes[:-1]:
        data[offset : offset + len(part)] = part
    offset, part, _ = writes[-1]
    kept = draw.draw(st.lists(st.booleans(), min_size=len(part) // SECTOR_BYTES, max_size=len(part) // SECTOR_BYTES))
    for sector, stays in enumerate(kept):
        if stays:
            start = sector * SECTOR_BYTES
            data[offset + start : offset + start + SECTOR_BYTES] = part[start : start + SECTOR_BYTES]
    groups, _ = scan(bytes(data), first)
    assert [group.body for group in groups] in (fitted, fitted[:-1])


@settings(deadline=None, max_examples=examples(100))
@given(OLD, st.lists(BODIES, min_size=1, max_size=6), st.data())
def test_a_damaged_last_group_over_old_bytes_is_reported_with_its_offset(
    old: list[tuple[str, int, int, bytes]], bodies: list[bytes], draw: st.DataObject
) -> None:
    data = old_content(old)
    writes, fitted = written(data, bodies, 1)
    for offset, part, _ in writes:
        data[offset : offset + len(part)] = part
    offset = writes[-1][0]
    data[offset + draw.draw(st.integers(0, 35 + len(fitted[-1])))] ^= 1 << draw.draw(st.integers(0, 7))
    groups, scanner = scan(bytes(data), 1)
    assert [group.body for group in groups] == fitted[:-1]
    assert scanner.torn is not None
    assert scanner.torn.offset == offset


def test_zeros_before_other_bytes_are_torn_in_a_new_file_and_the_end_of_a_reused_one() -> None:
    data = bytes(HEADER_BYTES) + group_bytes(NUMBER, 1, b"a") + bytes(ALIGNMENT) + b"x" * ALIGNMENT
    for reused, torn in ((False, True), (True, False)):
        scanner = GroupScanner(lambda size, offset: data[offset : offset + size], len(data), "a.journal", NUMBER, reused=reused)
        assert [group.body for group in scanner.groups(0)] == [b"a"]
        assert (scanner.torn is not None) is torn
