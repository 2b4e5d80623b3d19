"""Adds and their answers of version 2 in bulk: runs are found in a buffer by offsets, without an object per entry.

The bytes are those of the message form in `wire.v2`, which handles every other frame. A run ends where ledger, flags or master key
change, so its receiver checks these once. Measured costs: one unpack and one comparison of 32 constant bytes per add; one join of
packed ids for answers; `iter_unpack` with one comparison of 20 bytes for reading them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import Struct

from triplicate.ledger import HEADER_BYTES, MASTER_KEY_BYTES
from triplicate.wire.frames import LENGTH_BYTES, MAX_FRAME_BYTES
from triplicate.wire.messages import Status
from triplicate.wire.status import status_from_v2, status_to_v2
from triplicate.wire.v2 import ADD, FLAG_HIGH_PRIORITY, FLAG_RECOVERY_ADD, header_word

ADD_HEAD_BYTES = LENGTH_BYTES + 4 + MASTER_KEY_BYTES
"""Bytes of an add's frame before the entry: length, header word, master key."""

ADD_RESPONSE = Struct(">IIIqq")
"""A whole add answer: length (24), header word, v2 code, ledger id, entry id."""

_ADD_WORD = header_word(ADD)
_LEAST_BODY = ADD_HEAD_BYTES - LENGTH_BYTES + HEADER_BYTES
_FIRST_IDS = Struct(">II20sq").unpack_from
# Length; header word, master key and ledger id as one constant; entry id; last add confirmed.
_CONSTANT_START = LENGTH_BYTES
_CONSTANT_END = ADD_HEAD_BYTES + 8
_unpack_add = Struct(">I32sqq").unpack_from
_unpack_single_add = Struct(">II20sqqq").unpack_from
_pack_add_head = Struct(">II20s").pack

_ANSWER_BYTES = ADD_RESPONSE.size
_ANSWER_BODY_BYTES = _ANSWER_BYTES - LENGTH_BYTES
_ANSWER_HEAD = Struct(">IIIq")
_ANSWER_RECORD = Struct(">20sq")
_ANSWER_IDS = Struct(">12sqq")
_pack_id = Struct(">q").pack
_pack_ids = Struct(">qq").pack
_ANSWER_BEGINNING = Struct(">III").pack
_GOOD_ANSWER = Struct(">III").pack(_ANSWER_BODY_BYTES, _ADD_WORD, status_to_v2(Status.OK))


@dataclass(slots=True)
class AddRun:
    """Consecutive adds of one ledger with one master key and the same flags, whole in a buffer.

    Frame i is ``buffer[offsets[i]:offsets[i + 1]]``, its entry begins `ADD_HEAD_BYTES` later; the run ends at ``offsets[-1]``.
    """

    ledger_id: int
    master_key: bytes
    recovery: bool
    high_priority: bool
    entry_ids: list[int]
    offsets: list[int]
    """One more than entries."""
    last_add_confirmed: int
    """The greatest among the entries' headers."""


@dataclass(slots=True)
class AddAnswerRun:
    """Consecutive add answers with one ledger and one status; they end at `end`."""

    status: Status
    ledger_id: int
    entry_ids: list[int]
    end: int


def add_prefix(entry_size: int, flags: int, master_key: bytes) -> bytes:
    """The bytes before an entry of `entry_size` bytes in an add's frame; `flags` are `FLAG_RECOVERY_ADD`, `FLAG_HIGH_PRIORITY`."""
    return _pack_add_head(ADD_HEAD_BYTES - LENGTH_BYTES + entry_size, _ADD_WORD | flags, master_key)


def scan_adds(buffer: bytes, position: int, end: int, max_frame_bytes: int = MAX_FRAME_BYTES) -> AddRun | None:
    """The run of version-2 adds that begins at `position`, a frame's beginning.

    None when the frame there is incomplete, or not an add with a non-negative id. `next_frame` and `decode_request` then handle it, and
    name the error.
    """
    if position + LENGTH_BYTES + _LEAST_BODY > end:
        return None
    _, word, master_key, ledger_id = _FIRST_IDS(buffer, position)
    if word >> 16 != _ADD_WORD >> 16 or ledger_id < 0:
        return None
    constant = buffer[position + _CONSTANT_START : position + _CONSTANT_END]
    entry_ids: list[int] = []
    offsets = [position]
    greatest = -(2**63)
    last_start = end - (LENGTH_BYTES + _LEAST_BODY)
    largest_body = max_frame_bytes - LENGTH_BYTES
    while position <= last_start:
        size, present, entry_id, last_add_confirmed = _unpack_add(buffer, position)
        position += LENGTH_BYTES + size
        if present != constant or position > end or entry_id < 0 or not _LEAST_BODY <= size <= largest_body:
            break
        entry_ids.append(entry_id)
        offsets.append(position)
        if last_add_confirmed > greatest:
            greatest = last_add_confirmed
    if not entry_ids:
        return None
    recovery = bool(word & FLAG_RECOVERY_ADD)
    return AddRun(ledger_id, master_key, recovery, bool(word & FLAG_HIGH_PRIORITY), entry_ids, offsets, greatest)


def iter_adds(
    buffer: bytes, position: int, end: int, max_frame_bytes: int = MAX_FRAME_BYTES
) -> Iterator[tuple[bytes, int, int, int, int, int]]:
    """The version-2 adds without flags that begin at `position`, a frame's beginning, of any ledgers and keys.

    For chunks in which ledgers alternate, where every run of `scan_adds` would be one add. Ends at any other frame.

    Yields:
        (master key, ledger id, entry id, last add confirmed, where the entry begins, where it and the frame end).
    """
    last_start = end - (LENGTH_BYTES + _LEAST_BODY)
    largest_body = max_frame_bytes - LENGTH_BYTES
    while position <= last_start:
        size, word, master_key, ledger_id, entry_id, last_add_confirmed = _unpack_single_add(buffer, position)
        start = position + ADD_HEAD_BYTES
        position += LENGTH_BYTES + size
        if word != _ADD_WORD or position > end or ledger_id < 0 or entry_id < 0 or not _LEAST_BODY <= size <= largest_body:
            return
        yield master_key, ledger_id, entry_id, last_add_confirmed, start, position


def encode_add_responses(ledger_id: int, entry_ids: Sequence[int], status: Status = Status.OK) -> bytes:
    """The frames of as many add answers, one after another."""
    if not entry_ids:
        return b""
    head = _ANSWER_HEAD.pack(_ANSWER_BODY_BYTES, _ADD_WORD, status_to_v2(status), ledger_id)
    return head + head.join(map(_pack_id, entry_ids))


def encode_alternating_add_responses(ledger_ids: Sequence[int], entry_ids: Sequence[int], status: Status = Status.OK) -> bytes:
    """As `encode_add_responses` for as many adds of as many ledgers."""
    if not entry_ids:
        return b""
    head = _ANSWER_BEGINNING(_ANSWER_BODY_BYTES, _ADD_WORD, status_to_v2(status))
    return head + head.join(map(_pack_ids, ledger_ids, entry_ids))


def scan_add_responses(buffer: bytes, position: int, end: int) -> AddAnswerRun | None:
    """The run of version-2 add answers that begins at `position`, a frame's beginning.

    None when the frame there is incomplete or another one; it is then for `next_frame` and `decode_response`.
    """
    whole = end - (end - position) % _ANSWER_BYTES
    if whole <= position:
        return None
    size, word, code, ledger_id = _ANSWER_HEAD.unpack_from(buffer, position)
    if size != _ANSWER_BODY_BYTES or word >> 16 != _ADD_WORD >> 16:
        return None
    head = buffer[position : position + _ANSWER_HEAD.size]
    entry_ids: list[int] = []
    # A view: a slice would copy all that is left, once for each of the short runs of several ledgers in turn.
    for answer_head, entry_id in _ANSWER_RECORD.iter_unpack(memoryview(buffer)[position:whole]):
        if answer_head != head:
            break
        entry_ids.append(entry_id)
    return AddAnswerRun(status_from_v2(code), ledger_id, entry_ids, position + len(entry_ids) * _ANSWER_BYTES)


def gather_add_responses(buffer: bytes, position: int, end: int, entries_by_ledger: dict[int, int | list[int]]) -> int:
    """Collect the entries of the version-2 add answers with status OK at `position`, of any ledgers, and return the answers' end.

    Args:
        entries_by_ledger: maps a ledger to its entries in the order of their answers, to which these are added. A single entry is stored
            without a list, because a list for each of many ledgers would mostly cost garbage collections.
    """
    whole = end - (end - position) % _ANSWER_BYTES
    entries_of = entries_by_ledger.get
    for head, ledger_id, entry_id in _ANSWER_IDS.iter_unpack(memoryview(buffer)[position:whole]):
        if head != _GOOD_ANSWER:
            break
        position += _ANSWER_BYTES
        before = entries_of(ledger_id)
        if before is None:
            entries_by_ledger[ledger_id] = entry_id
        elif isinstance(before, list):
            before.append(entry_id)
        else:
            entries_by_ledger[ledger_id] = [before, entry_id]
    return position
