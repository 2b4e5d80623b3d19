"""Prints the groups of a journal file, also of a damaged one and of one in use. Reads only; holds one group in memory.

A running bookie only appends to its newest file. A group that is being written looks like a torn one.
"""

from __future__ import annotations

from collections.abc import Iterator

from triplicate.bookie.core.file_header import HEADER_BYTES, JOURNAL_MAGIC, decode_file_header
from triplicate.bookie.core.journal_format import (
    ALIGNMENT,
    GROUP_HEADER,
    GROUP_HEADER_BYTES,
    GROUP_MAGIC,
    REUSED_KEY,
    SEARCH_BYTES,
    GroupScanner,
    GroupType,
    JournalGroup,
)
from triplicate.bookie.core.journal_mark import decode_mark
from triplicate.bookie.core.ledger_data import LedgerData, decode_states
from triplicate.bookie.files import read_file
from triplicate.bookie.offline.dump_lines import DumpChoice, DumpLine, LineKind, damage_line, entry_line, refuse_foreign_file
from triplicate.errors import CorruptionError, FormatError, ProtocolError
from triplicate.runtime import Disk, File
from triplicate.wire import AddRequest, v2

LENGTH_BYTES = 4
"""Bytes of the length before each packet."""
TORN = (
    "no whole group begins here, and none follows: a write that was never acknowledged, one that a running bookie has not finished, or "
    "damage in the newest group"
)


def dump_mark(disk: Disk, path: str) -> Iterator[DumpLine]:
    """The line of a journal's mark, in the file at `path`. Raises OSError."""
    try:
        mark = decode_mark(read_file(disk, path), path)
    except (CorruptionError, FormatError) as error:
        yield damage_line(0, None, str(error))
        return
    facts = {"file_number": mark.file_number, "position": mark.offset, "sequence": mark.sequence, "flush": mark.flush_number}
    yield DumpLine(LineKind.MARK, 0, facts)


def dump_journal(disk: Disk, path: str, choice: DumpChoice) -> Iterator[DumpLine]:
    """The lines of one file, in the order of their offsets.

    Raises:
        FormatError: of an Apache bookie or a newer release. CorruptionError: nothing says that it is a journal file. OSError.
    """
    file = disk.open(path, readonly=True)
    try:
        yield from _JournalDump(file, path, choice).lines()
    finally:
        file.close()


class _JournalDump:
    def __init__(self, file: File, path: str, choice: DumpChoice) -> None:
        self._file = file
        self._path = path
        self._choice = choice
        self._size = file.size()
        """At the beginning; a running bookie may append meanwhile."""

    def lines(self) -> Iterator[DumpLine]:
        header = self._file.pread(HEADER_BYTES, 0)
        refuse_foreign_file(header, self._path)
        reused = False
        try:
            identity = decode_file_header(header, JOURNAL_MAGIC, self._path)
        except CorruptionError as error:
            number = self._number_of_groups()
            if number is None:
                raise
            yield damage_line(0, HEADER_BYTES, str(error))
        else:
            number, reused = identity.number, identity.extra.get(REUSED_KEY) is True
            facts = {
                "number": number,
                "bookie_id": identity.bookie_id,
                "instance_id": identity.instance_id,
                "incarnation": identity.incarnation,
                "reused": reused,
                "bytes": self._size,
            }
            yield DumpLine(LineKind.HEADER, 0, facts)
        yield from self._groups(GroupScanner(self._file.pread, self._size, self._path, number, reused=reused), reused)

    def _number_of_groups(self) -> int | None:
        """The file number in the first plausible group; None: there is no group. For a file whose header is damaged."""
        for offset in range(HEADER_BYTES, self._size, ALIGNMENT):
            block = self._file.pread(GROUP_HEADER_BYTES, offset)
            if len(block) == GROUP_HEADER_BYTES and block[: len(GROUP_MAGIC)] == GROUP_MAGIC:
                number = int(GROUP_HEADER.unpack_from(block)[3])
                if GroupScanner(self._file.pread, self._size, self._path, number).is_group(offset):
                    return number
        return None

    def _groups(self, scanner: GroupScanner, reused: bool) -> Iterator[DumpLine]:
        offset, sequence = HEADER_BYTES, None
        while offset < min(self._size, self._choice.end):
            reason = "damaged: a whole group with a later number follows"
            try:
                group = scanner.group_at(offset)
            except FormatError as error:
                group, reason = None, str(error)
            if group is None:
                following = self._later_group(scanner, offset, sequence or 0)
                if following is None:
                    yield self._end_line(offset, reused)
                    return
                yield damage_line(offset, following, reason)
                offset = following
                continue
            if sequence is not None and group.sequence != sequence + 1:
                yield damage_line(offset, offset, f"group {group.sequence} follows group {sequence}: groups between them are missing")
            sequence = group.sequence
            if offset >= self._choice.start:
                yield from self._group_lines(group)
            offset = group.end.offset
        if offset >= self._size:
            yield DumpLine(LineKind.END, offset, {"reason": "end of the file"})

    def _later_group(self, scanner: GroupScanner, offset: int, sequence: int) -> int | None:
        """Where the next whole group with a number above `sequence` begins."""
        for position in range(offset + ALIGNMENT, self._size, SEARCH_BYTES):
            chunk = self._file.pread(SEARCH_BYTES, position)
            for start in range(0, len(chunk), ALIGNMENT):
                if chunk[start : start + len(GROUP_MAGIC)] == GROUP_MAGIC and self._is_later(scanner, position + start, sequence):
                    return position + start
        return None

    def _is_later(self, scanner: GroupScanner, offset: int, sequence: int) -> bool:
        try:
            group = scanner.group_at(offset)
        except FormatError:
            return True  # Reported when it is reached.
        return group is not None and group.sequence > sequence

    def _end_line(self, offset: int, reused: bool) -> DumpLine:
        if self._is_zero(offset, offset + ALIGNMENT) and (reused or self._is_zero(offset, self._size)):
            return DumpLine(LineKind.END, offset, {"reason": "end of the groups"})
        return damage_line(offset, None, TORN)

    def _is_zero(self, start: int, end: int) -> bool:
        for position in range(start, end, SEARCH_BYTES):
            part = self._file.pread(min(SEARCH_BYTES, end - position), position)
            if part.count(0) != len(part):
                return False
        return True

    def _group_lines(self, group: JournalGroup) -> Iterator[DumpLine]:
        choice = self._choice
        if not choice.is_narrowed:
            facts = {"sequence": group.sequence, "type": group.type.name.lower(), "count": group.count, "bytes": len(group.body)}
            yield DumpLine(LineKind.GROUP, group.offset, facts)
        if not choice.entries and not choice.is_narrowed:
            return
        try:
            yield from self._adds(group) if group.type is GroupType.ENTRIES else self._states(group)
        except (CorruptionError, FormatError, ProtocolError) as error:
            yield damage_line(group.offset, group.end.offset, f"the group is whole, and its body cannot be read: {error}")

    def _adds(self, group: JournalGroup) -> Iterator[DumpLine]:
        body, position = group.body, 0
        while position < len(body):
            length = int.from_bytes(body[position : position + LENGTH_BYTES], "big")
            start = position + LENGTH_BYTES
            if start + length > len(body):
                raise CorruptionError(f"a packet of {length} bytes reaches beyond its end")
            request = v2.decode_request(body[start : start + length])
            if not isinstance(request, AddRequest):
                raise ProtocolError(f"a packet is no add but {type(request).__name__}")
            position = start + length
            if self._choice.holds(request.ledger_id, request.entry_id, request.entry_id):
                offset = group.offset + GROUP_HEADER_BYTES + position - len(request.body)
                yield entry_line(offset, request.ledger_id, request.entry_id, bytes(request.body), self._choice, recovery=request.recovery)

    def _states(self, group: JournalGroup) -> Iterator[DumpLine]:
        if self._choice.is_by_entry:
            return
        for state in decode_states(group.body, group.count):
            if self._choice.holds_ledger(state.ledger_id):
                yield state_line(group.offset, state)


def state_line(offset: int | None, state: LedgerData, kind: LineKind = LineKind.STATE, **more: object) -> DumpLine:
    """The line of a state record. The master key is a secret and not printed."""
    facts = {
        "ledger": state.ledger_id,
        "fenced": state.fenced,
        "limbo": state.limbo,
        "deleted": state.deleted,
        "explicit_lac": state.explicit_lac is not None,
        "master_key": bool(state.master_key),
    }
    return DumpLine(kind, offset, {**facts, **more})
