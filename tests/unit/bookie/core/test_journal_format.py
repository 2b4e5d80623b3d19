"""Journal files: groups as bytes, torn tails distinguished from corruption."""

from __future__ import annotations

import pytest

from triplicate.bookie.core.file_header import (
    ENTRY_LOG_MAGIC,
    HEADER_BYTES,
    JOURNAL_MAGIC,
    FileIdentity,
    decode_file_header,
    encode_file_header,
)
from triplicate.bookie.core.journal_format import ALIGNMENT, GroupScanner, GroupType, JournalGroup, encode_group
from triplicate.bookie.core.journal_mark import JournalMark, decode_mark, encode_mark
from triplicate.bookie.core.ledger_data import LedgerData, decode_state, decode_states, encode_state, encode_states
from triplicate.errors import CorruptionError, FormatError

IDENTITY = FileIdentity("bookie-1", "a-cluster", 7)
BODIES = [b"first" * 100, b"second" * 1000, b"third"]


def journal_of(bodies: list[bytes], *, zeros: int = 3 * ALIGNMENT) -> bytes:
    data = encode_file_header(JOURNAL_MAGIC, IDENTITY)
    for index, body in enumerate(bodies):
        data += b"".join(bytes(part) for part in encode_group(GroupType.ENTRIES, 7, index + 1, 1, [body]))
    return data + bytes(zeros)


def scan(data: bytes, after: int | None = 0) -> tuple[list[JournalGroup], GroupScanner]:
    scanner = GroupScanner(lambda size, offset: data[offset : offset + size], len(data), "a.journal", 7)
    return list(scanner.groups(after)), scanner


def test_groups_come_back_in_order_and_at_multiples_of_4_kib() -> None:
    groups, scanner = scan(journal_of(BODIES))
    assert [group.body for group in groups] == BODIES
    assert [group.sequence for group in groups] == [1, 2, 3]
    assert all(group.offset % ALIGNMENT == 0 for group in groups)
    assert scanner.torn is None
    assert scanner.end == groups[-1].end.offset


def test_a_group_is_written_without_copying_its_packets() -> None:
    packet = b"packet" * 50
    assert encode_group(GroupType.ENTRIES, 1, 1, 2, [packet, packet])[1] is packet


def test_a_group_without_body_is_a_group() -> None:
    assert [group.body for group in scan(journal_of([b"", b"x"]))[0]] == [b"", b"x"]


@pytest.mark.parametrize("lost", [0, 1, 100, 4000, 5900])
def test_a_torn_last_group_ends_the_journal_and_is_reported(lost: int) -> None:
    whole = journal_of(BODIES[:2], zeros=0)
    last = HEADER_BYTES + ALIGNMENT
    torn = bytearray(whole)
    torn[last + lost] ^= 0xFF
    groups, scanner = scan(bytes(torn) + bytes(ALIGNMENT))
    assert [group.body for group in groups] == BODIES[:1]
    assert scanner.torn is not None
    assert scanner.torn.offset == last


def test_a_cut_last_group_is_torn() -> None:
    whole = journal_of(BODIES[:2], zeros=0)
    groups, scanner = scan(whole[: HEADER_BYTES + ALIGNMENT + 2000])
    assert len(groups) == 1
    assert scanner.torn is not None


def test_every_flipped_byte_of_a_group_with_another_behind_it_is_corruption() -> None:
    whole = journal_of(BODIES[:1] * 2, zeros=0)
    for position in range(HEADER_BYTES, HEADER_BYTES + 36 + len(BODIES[0])):
        damaged = bytearray(whole)
        damaged[position] ^= 0x10
        with pytest.raises(CorruptionError, match=r"damaged, but group 2 at byte 8192|is not|follows group"):
            scan(bytes(damaged))


def test_a_missing_group_is_corruption() -> None:
    data = encode_file_header(JOURNAL_MAGIC, IDENTITY)
    for sequence in (1, 3):
        data += b"".join(bytes(part) for part in encode_group(GroupType.ENTRIES, 7, sequence, 1, [b"x"]))
    with pytest.raises(CorruptionError, match="group 3 follows group 1"):
        scan(data)


def test_groups_of_an_earlier_use_of_the_file_do_not_count() -> None:
    data = journal_of(BODIES[:1], zeros=0) + b"".join(bytes(part) for part in encode_group(GroupType.ENTRIES, 6, 2, 1, [b"old"]))
    groups, _ = scan(data)
    assert [group.body for group in groups] == BODIES[:1]


def test_a_group_of_an_unknown_type_is_an_error_that_names_it() -> None:
    data = encode_file_header(JOURNAL_MAGIC, IDENTITY)
    data += b"".join(bytes(part) for part in encode_group(9, 7, 1, 1, [b"x"]))  # type: ignore[arg-type]
    with pytest.raises(FormatError, match="type 9"):
        scan(data)


def test_a_file_header_comes_back_and_every_flipped_byte_is_refused() -> None:
    block = encode_file_header(JOURNAL_MAGIC, IDENTITY)
    assert len(block) == HEADER_BYTES
    assert decode_file_header(block, JOURNAL_MAGIC, "x") == IDENTITY
    for position in range(HEADER_BYTES):
        damaged = bytearray(block)
        damaged[position] ^= 1
        with pytest.raises(CorruptionError):
            decode_file_header(bytes(damaged), JOURNAL_MAGIC, "x")
    with pytest.raises(CorruptionError, match="no header of the kind TPENTR"):
        decode_file_header(block, ENTRY_LOG_MAGIC, "x")


def test_a_file_header_keeps_keys_of_a_later_release() -> None:
    later = FileIdentity("b", "i", 1, 2, {"compaction": 5})
    assert decode_file_header(encode_file_header(JOURNAL_MAGIC, later), JOURNAL_MAGIC, "x") == later


def test_a_file_of_a_newer_format_is_named() -> None:
    from triplicate.bookie.core import file_header
    from triplicate.bookie.core.checksum import crc32c

    block = bytearray(encode_file_header(JOURNAL_MAGIC, IDENTITY))
    block[11] = 2
    length = int.from_bytes(block[12:16], "big")
    block[16:20] = crc32c(bytes(block[:16]), bytes(block[20 : 20 + length])).to_bytes(4, "big")
    with pytest.raises(FormatError, match=f"format 2, this release knows {file_header.FORMAT_VERSION}"):
        decode_file_header(bytes(block), JOURNAL_MAGIC, "x")


def test_a_mark_comes_back_and_every_flipped_byte_is_refused() -> None:
    data = encode_mark(JournalMark(3, 8192, 77, 9))
    assert decode_mark(data, "mark") == JournalMark(3, 8192, 77, 9)
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 4
        with pytest.raises(CorruptionError):
            decode_mark(bytes(damaged), "mark")


def test_state_records_come_back() -> None:
    states = [LedgerData(1, b"k" * 20), LedgerData(2, b"k" * 20, True, b"lac" * 9), LedgerData(3, b"", limbo=True, explicit_lac=b"")]
    body, count = encode_states(states)
    assert list(decode_states(body, count)) == states
    with pytest.raises(CorruptionError):
        list(decode_states(body + b"x", count))
    with pytest.raises(CorruptionError):
        decode_state(encode_state(states[1])[:-1])
    with pytest.raises(FormatError, match="version 3"):
        decode_state(b"\x03" + encode_state(states[0])[1:])


def test_merged_states_keep_every_fence() -> None:
    fenced, later = LedgerData(1, b"k", True, b"lac"), LedgerData(1, b"k")
    assert later.merged(fenced) == LedgerData(1, b"k", True, b"lac")
