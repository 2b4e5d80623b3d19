"""Adds of protocol version 3 and their answers in bulk, encoded and parsed by hand, without a protobuf or other object per entry.

The bytes are those of the message form in `wire.v3`. The message form handles every frame that differs from those of BookKeeper's client
and bookie: fields in another order, unknown fields, negative numbers, a key of another length. A run ends when a field other than entry
and transaction changes, or when the varint of one of these two gets longer. So a receiver checks the other fields once per run, as with
`wire.v2_bulk`, and each frame costs one unpack and three comparisons, since frames of one run differ in known places only.

Layout of an add, numbers in brackets varints: ``u32 length``, ``0A [n] 08 03 10 02 18 [transaction]``, with a priority ``20
[priority]``, ``AA 06 [n] 08 [ledger] 10 [entry] 1A 14 key 22 [n] entry``, for a deferred sync ``28 01``, for a recovery ``A0 06 01``.
Of an answer: ``u32 length``, ``0A [n] 08 03 10 02 18 [transaction] 10 [status] AA 06 [n] 08 [status] 10 [ledger] 18 [entry]``.
Source: BookKeeper `BookkeeperProtocol.proto`, `PerChannelBookieClient`, `WriteEntryProcessorV3`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple

from triplicate.errors import ArgumentError
from triplicate.ledger import HEADER_BYTES, MASTER_KEY_BYTES
from triplicate.wire.frames import LENGTH_BYTES, MAX_FRAME_BYTES
from triplicate.wire.messages import Status
from triplicate.wire.status import status_from_v3
from triplicate.wire.v2 import FLAG_HIGH_PRIORITY, FLAG_RECOVERY_ADD
from triplicate.wire.v2_bulk import ADD_HEAD_BYTES, AddRun, add_prefix

_INT32_END = 1 << 31
_UINT32_END = 1 << 32
_INT64_END = 1 << 63
_UINT64_END = 1 << 64

_pack_length = Struct(">I").pack
_unpack_length = Struct(">I").unpack_from

_ENVELOPE = b"\x08\x03\x10\x02\x18"
"""Version 3, operation add, and the tag of the transaction id."""
_ENVELOPE_START = 2
_ENVELOPE_END = _ENVELOPE_START + len(_ENVELOPE)
_HEADERS = [b"\x0a" + bytes([len(_ENVELOPE) + size]) + _ENVELOPE for size in range(17)]
"""The first bytes of a body, by the number of bytes that transaction and priority have together."""
_ADD_TAG = b"\xaa\x06"
_KEY_TAG = b"\x1a" + bytes([MASTER_KEY_BYTES])
_DEFERRED = b"\x28\x01"
_RECOVERY = b"\xa0\x06\x01"
_TAILS = {
    (deferred, recovery): (_DEFERRED if deferred else b"") + (_RECOVERY if recovery else b"")
    for deferred in (False, True)
    for recovery in (False, True)
}
_FLAGS = {tail: flags for flags, tail in _TAILS.items()}


# Varints. The low 7 bits first, each byte but the last with its top bit set.

_LAST = [bytes([value]) for value in range(128)]
_MORE = [bytes([value | 128]) for value in range(128)]
_SHORT = _LAST + [low + high for high in _LAST[1:] for low in _MORE]
"""The varints of all numbers below 2¹⁴."""
_LOW = [low + high for high in _MORE for low in _MORE]
"""The same 14 bits as the beginning of a longer varint."""


def _varint(value: int) -> bytes:
    """The varint of a number that is not negative."""
    return _SHORT[value] if value < 16384 else _LOW[value & 16383] + _varint(value >> 14)


def _signed(value: int) -> bytes:
    if not -_INT64_END <= value < _INT64_END:
        raise ArgumentError(f"{value} does not fit into 64 bits with a sign")
    return _varint(value if value >= 0 else value + _UINT64_END)


def _transaction(txn_id: int) -> bytes:
    if not 0 <= txn_id < _UINT64_END:
        raise ArgumentError(f"txn_id {txn_id} does not fit into 64 bits without a sign")
    return _varint(txn_id)


def _read_varint(buffer: bytes, position: int, bytes_max: int = 9) -> tuple[int, int]:
    """A number of at most 63 bits and its end; (-1, …) for a longer or negative one, which the message form handles.

    Args:
        bytes_max: limit of its bytes.
    """
    first = buffer[position]
    if first < 128:
        return first, position + 1
    value = first & 127
    for index in range(1, bytes_max):
        byte = buffer[position + index]
        value += (byte & 127) << 7 * index
        if byte < 128:
            return value, position + index + 1
    return -1, position + bytes_max


_HIGH_BITS = bytes(byte >> 7 for byte in range(256))


def _read_column(numbers: list[bytes]) -> list[int]:
    """Decode varints up to the first one that has another width."""
    width = len(numbers[0]) if numbers else 1
    joined = b"".join(numbers)
    marks = joined.translate(_HIGH_BITS)
    shape = b"\x01" * (width - 1) + b"\x00"
    count = len(numbers)
    if marks != shape * count:
        count = next(index for index in range(count) if marks[index * width : (index + 1) * width] != shape)
        joined = joined[: count * width]
    if width == 1:
        return list(joined)
    if width == 2:
        return [first + (second << 7) - 128 for first, second in zip(joined[::2], joined[1::2], strict=True)]
    if width == 3:
        columns = zip(joined[::3], joined[1::3], joined[2::3], strict=True)
        return [first + (second << 7) + (third << 14) - 16512 for first, second, third in columns]
    if width == 4:
        four = zip(joined[::4], joined[1::4], joined[2::4], joined[3::4], strict=True)
        return [first + (second << 7) + (third << 14) + (fourth << 21) - 2113664 for first, second, third, fourth in four]
    return [_read_varint(joined, position)[0] for position in range(0, len(joined), width)]


# Adds.


class V3AddEncoder:
    """Encodes the adds of one writer. All fields but entry and transaction are packed once."""

    __slots__ = ("_before_size", "_constants", "_front", "_key", "_priority_bytes", "_shape", "_tail")

    def __init__(
        self, ledger_id: int, master_key: bytes, *, recovery: bool = False, deferred_sync: bool = False, priority: int | None = None
    ) -> None:
        """
        Args:
            priority: above 0 is high; None sends none.

        Raises:
            ArgumentError: the key has not 20 bytes, or a number does not fit into its field.
        """
        if len(master_key) != MASTER_KEY_BYTES:
            raise ArgumentError(f"master_key has {len(master_key)} bytes; an add needs exactly {MASTER_KEY_BYTES}")
        if priority is not None and not 0 <= priority < _UINT32_END:
            raise ArgumentError(f"priority {priority} does not fit into 32 bits")
        field = b"" if priority is None else b"\x20" + _varint(priority)
        self._priority_bytes = len(field)
        self._before_size = field + _ADD_TAG
        self._front = b"\x08" + _signed(ledger_id) + b"\x10"
        self._key = _KEY_TAG + master_key + b"\x22"
        self._tail = _TAILS[deferred_sync, recovery]
        # The bytes before the transaction, between it and the entry id, and after that id. Valid while the sizes of all three stay.
        self._shape = (0, 0, 0)
        self._constants = (b"", b"", b"")

    @property
    def tail(self) -> bytes:
        """The bytes behind the entry in every frame; empty unless the add belongs to a recovery or its sync is deferred."""
        return self._tail

    def head(self, entry_id: int, txn_id: int, entry_size: int) -> bytes:
        """The bytes before an entry of this size in its frame; frame = head, entry, `tail`.

        Raises:
            ArgumentError: an id does not fit into 64 bits.
        """
        transaction = _transaction(txn_id)
        number = _varint(entry_id) if 0 <= entry_id < _INT64_END else _signed(entry_id)
        shape = (len(transaction), len(number), entry_size)
        if shape != self._shape:
            self._constants = self._constants_for(*shape)
            self._shape = shape
        before, between, behind = self._constants
        return b"".join((before, transaction, between, number, behind))

    def _constants_for(self, transaction_bytes: int, number_bytes: int, entry_size: int) -> tuple[bytes, bytes, bytes]:
        behind = self._key + _varint(entry_size)
        after = len(self._front) + number_bytes + len(behind) + entry_size + len(self._tail)
        header = _HEADERS[transaction_bytes + self._priority_bytes]
        between = self._before_size + _varint(after) + self._front
        length = len(header) + transaction_bytes + len(between) - len(self._front) + after
        return _pack_length(length) + header, between, behind

    def encode(self, entry_id: int, txn_id: int, entry: bytes) -> bytes:
        """The whole frame of one add, which may go to several bookies. `entry` is complete and has the same ids inside.

        Raises:
            ArgumentError: an id does not fit into 64 bits.
        """
        return b"".join((self.head(entry_id, txn_id, len(entry)), entry, self._tail))


@dataclass(slots=True)
class V3AddRun:
    """Consecutive adds that differ only in entry and transaction, whole in a buffer.

    Entry i is ``buffer[starts[i]:stops[i]]``, and its own header carries the same ids; the run ends at `end`.
    """

    ledger_id: int
    master_key: bytes
    recovery: bool
    high_priority: bool
    deferred_sync: bool
    entry_ids: list[int]
    txn_ids: list[int]
    starts: list[int]
    stops: list[int]
    end: int
    last_add_confirmed: int
    """The greatest among the entries' headers."""

    def as_v2(self, buffer: bytes) -> tuple[bytes, AddRun]:
        """The same adds as frames of version 2, one after another, and as a run of them: the form of the journal.

        Version 2 has no flag for a deferred sync, so that is left out.
        """
        flags = (FLAG_RECOVERY_ADD if self.recovery else 0) | (FLAG_HIGH_PRIORITY if self.high_priority else 0)
        parts: list[bytes] = []
        offsets = [0]
        position, size, prefix = 0, -1, b""
        for start, stop in zip(self.starts, self.stops, strict=True):
            if stop - start != size:
                size = stop - start
                prefix = add_prefix(size, flags, self.master_key)
            parts.append(prefix)
            parts.append(buffer[start:stop])
            position += ADD_HEAD_BYTES + size
            offsets.append(position)
        run = AddRun(self.ledger_id, self.master_key, self.recovery, self.high_priority, self.entry_ids, offsets, self.last_add_confirmed)
        return b"".join(parts), run


class _Add(NamedTuple):
    """The first add of a run, with the parts that the others have in common with it."""

    transaction_bytes: int
    entry_bytes: int
    priority: bytes
    ledger_id: int
    master_key: bytes
    tail: bytes


def scan_v3_adds(buffer: bytes, position: int, end: int, max_frame_bytes: int = MAX_FRAME_BYTES) -> V3AddRun | None:
    """The run of version-3 adds that begins at `position`, a frame's beginning.

    None when there is no whole add in the form of BookKeeper's client, or when its ids differ from those in its entry: the frame then goes
    to `next_frame` and `v3.decode_request`, which also name the error.
    """
    start = position + LENGTH_BYTES
    stop = start + _unpack_length(buffer, position)[0] if start <= end else end + 1
    if stop > end or stop - position > max_frame_bytes:
        return None
    try:
        first = _parse_add(buffer, start, stop)
    except IndexError:
        return None  # Cut short within a number.
    if first is None:
        return None
    deferred_sync, recovery = _FLAGS[first.tail]
    high_priority = bool(first.priority) and first.priority != b"\x20\x00"
    run = V3AddRun(first.ledger_id, first.master_key, recovery, high_priority, deferred_sync, [], [], [], [], position, -1)
    _scan_adds(buffer, end, max_frame_bytes, first, run)
    return run if run.txn_ids else None


def _parse_add(buffer: bytes, start: int, end: int) -> _Add | None:
    """The add whose body is between `start` and `end`; None when the message form must read it."""
    if not buffer.startswith(_ENVELOPE, start + _ENVELOPE_START) or buffer[start] != 0x0A:
        return None
    transaction_start = start + _ENVELOPE_END
    header_end = start + _ENVELOPE_START + buffer[start + 1]
    txn_id, position = _read_varint(buffer, transaction_start)
    transaction_bytes = position - transaction_start
    if txn_id < 0 or not buffer.startswith(_ADD_TAG, header_end):
        return None
    priority = buffer[position:header_end]
    if priority:
        value, priority_end = _read_varint(buffer, position + 1, 5)
        if not 0 <= value < _UINT32_END or priority != b"\x20" + _varint(value) or priority_end != header_end:
            return None
    # The tags between the numbers are compared when the frame is matched with the run's layout.
    _, position = _read_varint(buffer, header_end + len(_ADD_TAG), 4)
    ledger_id, position = _read_varint(buffer, position + 1)
    entry_id, key_start = _read_varint(buffer, position + 1)
    entry_bytes = key_start - position - 1
    key_start += len(_KEY_TAG)
    key_end = key_start + MASTER_KEY_BYTES
    size, position = _read_varint(buffer, key_end + 1, 4)
    tail = buffer[position + size : end]
    if ledger_id < 0 or entry_id < 0 or size < 0 or position + size > end or tail not in _FLAGS:
        return None
    return _Add(transaction_bytes, entry_bytes, priority, ledger_id, buffer[key_start:key_end], tail)


@lru_cache(maxsize=1024)
def _add_struct(head: int, transaction: int, middle: int, entry: int, before: int) -> Callable[[bytes, int], tuple[Any, ...]]:
    """Unpacks an add's head: length, constant, transaction, constant, entry id, constant; the entry's ledger, entry and confirmed ids."""
    return Struct(f">I{head}s{transaction}s{middle}s{entry}s{before}sqqq").unpack_from


_Layout = tuple[bytes, bytes, Callable[[bytes, int], tuple[Any, ...]], int, int]


@lru_cache(maxsize=4096)
def _layout(length: int, first: _Add) -> _Layout | None:
    """(constant after the transaction, constant before the entry, unpacker, offset of the entry, its size) of an add's frame.

    None if no add with the first one's fields has this length.
    """
    before_entry_id = b"\x08" + _varint(first.ledger_id) + b"\x10"
    key = _KEY_TAG + first.master_key + b"\x22"
    head = _HEADERS[first.transaction_bytes + len(first.priority)]
    before_size = len(head) + first.transaction_bytes + len(first.priority) + len(_ADD_TAG)
    sized = _sized(length - before_size)
    entry_sized = None if sized is None else _sized(sized[0] - len(before_entry_id) - first.entry_bytes - len(key) - len(first.tail))
    if sized is None or entry_sized is None or entry_sized[0] < HEADER_BYTES:
        return None
    middle = first.priority + _ADD_TAG + sized[1] + before_entry_id
    before = key + entry_sized[1]
    unpack = _add_struct(len(head), first.transaction_bytes, len(middle), first.entry_bytes, len(before))
    return middle, before, unpack, LENGTH_BYTES + length - len(first.tail) - entry_sized[0], entry_sized[0]


def _sized(room: int) -> tuple[int, bytes] | None:
    """The number of bytes that, with their length as a varint before them, fill `room`; and that varint."""
    for width in range(1, 5):
        if room >= width:
            written = _varint(room - width)
            if len(written) == width:
                return room - width, written
    return None


def _scan_adds(buffer: bytes, end: int, max_frame_bytes: int, first: _Add, run: V3AddRun) -> None:
    """The loop over a run's frames."""
    head, tail = _HEADERS[first.transaction_bytes + len(first.priority)], first.tail
    ledger_id, short, varint = first.ledger_id, _SHORT, _varint
    transactions: list[bytes] = []
    entry_ids, starts, stops = run.entry_ids, run.starts, run.stops
    confirmed_ids: list[int] = []
    layout_length = -1
    position, last_start = run.end, end - LENGTH_BYTES
    middle = before = b""
    unpack: Callable[[bytes, int], tuple[Any, ...]] = _unpack_length
    offset = size = 0
    while position <= last_start:
        length = _unpack_length(buffer, position)[0]
        following = position + LENGTH_BYTES + length
        if following > end:
            break
        if length != layout_length:
            layout = _layout(length, first)
            if layout is None or length + LENGTH_BYTES > max_frame_bytes:
                break
            middle, before, unpack, offset, size = layout
            layout_length = length
        _, head_found, transaction, middle_found, entry, before_found, inner_ledger, entry_id, confirmed = unpack(buffer, position)
        if head_found != head or middle_found != middle or before_found != before or inner_ledger != ledger_id or entry_id < 0:
            break
        start = position + offset
        stop = start + size
        if entry != (short[entry_id] if entry_id < 16384 else varint(entry_id)) or (tail and buffer[stop:following] != tail):
            break
        transactions.append(transaction)
        entry_ids.append(entry_id)
        starts.append(start)
        stops.append(stop)
        confirmed_ids.append(confirmed)
        position = following
    run.txn_ids = _read_column(transactions)
    count = len(run.txn_ids)
    if count:
        # The run ends before the first transaction whose varint has another width.
        del entry_ids[count:], starts[count:], stops[count:]
        run.end = stops[-1] + len(tail)
        run.last_add_confirmed = max(confirmed_ids[:count])


# Answers.


@lru_cache(maxsize=1024)
def _answer_parts(ledger_id: int, status: Status, transaction_bytes: int, entry_bytes: int) -> tuple[bytes, bytes]:
    """The bytes before the transaction, and those between it and the entry id, for varints of these widths."""
    code = _varint(status)
    answer = b"\x08" + code + b"\x10" + _signed(ledger_id) + b"\x18"
    middle = b"\x10" + code + _ADD_TAG + bytes([len(answer) + entry_bytes]) + answer
    header = _HEADERS[transaction_bytes]
    return _pack_length(len(header) + transaction_bytes + len(middle) + entry_bytes) + header, middle


def encode_v3_add_responses(ledger_id: int, entry_ids: Sequence[int], txn_ids: Sequence[int], status: Status = Status.OK) -> bytes:
    """The frames of as many add answers, one after another; `entry_ids` and `txn_ids` are equally many.

    Raises:
        ArgumentError: an id does not fit into 64 bits.
    """
    parts: list[bytes] = []
    add = parts.append
    widths = (-1, -1)
    head = middle = b""
    for entry_id, txn_id in zip(entry_ids, txn_ids, strict=True):
        transaction = _transaction(txn_id)
        entry = _varint(entry_id) if 0 <= entry_id < _INT64_END else _signed(entry_id)
        if (len(transaction), len(entry)) != widths:
            widths = (len(transaction), len(entry))
            head, middle = _answer_parts(ledger_id, status, *widths)
        add(head)
        add(transaction)
        add(middle)
        add(entry)
    return b"".join(parts)


@dataclass(slots=True)
class V3AddAnswerRun:
    """Consecutive add answers with one ledger and one status; they end at `end`."""

    status: Status
    ledger_id: int
    entry_ids: list[int]
    txn_ids: list[int]
    end: int


def scan_v3_add_responses(buffer: bytes, position: int, end: int) -> V3AddAnswerRun | None:
    """The run of version-3 add answers that begins at `position`, a frame's beginning.

    None when there is no whole add answer in the form of BookKeeper's bookie: the frame then goes to `next_frame` and
    `v3.decode_response`.
    """
    start = position + LENGTH_BYTES
    stop = start + _unpack_length(buffer, position)[0] if start <= end else end + 1
    if stop > end:
        return None
    try:
        first = _parse_answer(buffer, start, stop)
    except IndexError:
        return None  # Cut short within a number.
    if first is None:
        return None
    status, ledger_id, transaction_start, transaction_end, entry_start = first
    head, middle = buffer[position:transaction_start], buffer[transaction_end:entry_start]
    layout = _answer_struct(len(head), transaction_end - transaction_start, len(middle), stop - entry_start)
    whole = end - (end - position) % layout.size
    transactions: list[bytes] = []
    entries: list[bytes] = []
    # A view: a slice would copy all that is left, once for each of the short runs of several ledgers in turn.
    for head_found, transaction, middle_found, entry in layout.iter_unpack(memoryview(buffer)[position:whole]):
        if head_found != head or middle_found != middle:
            break
        transactions.append(transaction)
        entries.append(entry)
    txn_ids, entry_ids = _read_column(transactions), _read_column(entries)
    # The run ends before the first varint of another width.
    count = min(len(txn_ids), len(entry_ids))
    del txn_ids[count:], entry_ids[count:]
    return V3AddAnswerRun(status, ledger_id, entry_ids, txn_ids, position + count * layout.size)


@lru_cache(maxsize=1024)
def _answer_struct(head: int, transaction: int, middle: int, entry: int) -> Struct:
    return Struct(f"{head}s{transaction}s{middle}s{entry}s")


def _parse_answer(buffer: bytes, start: int, end: int) -> tuple[Status, int, int, int, int] | None:
    """(status, ledger, start and end of the transaction, start of the entry id) of the answer with the body from `start` to `end`.

    None when the message form must read it.
    """
    if not buffer.startswith(_ENVELOPE, start + _ENVELOPE_START) or buffer[start] != 0x0A:
        return None
    transaction_start = start + _ENVELOPE_END
    txn_id, transaction_end = _read_varint(buffer, transaction_start)
    if txn_id < 0 or start + _ENVELOPE_START + buffer[start + 1] != transaction_end or buffer[transaction_end] != 0x10:
        return None
    top, position = _read_varint(buffer, transaction_end + 1)
    if not buffer.startswith(_ADD_TAG, position) or position + 3 + buffer[position + 2] != end or buffer[position + 3] != 0x08:
        return None
    inner, position = _read_varint(buffer, position + 4)
    if buffer[position] != 0x10:
        return None
    ledger_id, position = _read_varint(buffer, position + 1)
    if buffer[position] != 0x18:
        return None
    entry_start = position + 1
    entry_id, position = _read_varint(buffer, entry_start)
    if position != end or not 0 <= top < _INT32_END or not 0 <= inner < _INT32_END or ledger_id < 0 or entry_id < 0:
        return None
    return status_from_v3(top or inner), ledger_id, transaction_start, transaction_end, entry_start
