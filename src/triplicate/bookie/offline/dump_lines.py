"""The lines of a dump of a bookie's file, and the choice of lines."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from triplicate.errors import FormatError
from triplicate.ledger import ENTRY_HEADER, HEADER_BYTES

LAST_ID = 2**63 - 1
FOREIGN_MAGIC = {
    b"BKLG": ("a journal file", "readjournal"),
    b"BKLO": ("an entry log", "readlog"),
    b"BKLE": ("a ledger index file", "readledger"),
}
"""The first bytes of files of Apache's bookies: the kind of the file, and the command of BookKeeper's shell that prints it."""


class LineKind(StrEnum):
    """The kinds of lines."""

    HEADER = "header"
    MARK = "mark"
    GROUP = "group"
    BLOCK = "block"
    ENTRY = "entry"
    STATE = "state"
    FACT = "fact"
    LEDGER = "ledger"
    RUN = "run"
    LOG = "log"
    DELETED = "deleted"
    MISSING = "missing"
    DAMAGE = "damage"
    END = "end"


@dataclass(frozen=True, slots=True)
class DumpLine:
    """One line of a dump.

    Attributes:
        offset: where the described bytes begin in the file; None for rows of an index.
        facts: by name; values are numbers, texts, booleans or None.
    """

    kind: LineKind
    offset: int | None
    facts: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class DumpChoice:
    """The lines that a dump prints. Damage is always printed.

    Attributes:
        entries: also the entries and ledger states within groups and blocks.
        content: also the bytes of each entry behind its header: digest and payload.
        ledger_id: only this ledger. first_entry, last_entry: only these entries, inclusive.
        start, end: only groups or blocks that begin at `start` or behind it, and before `end`, in bytes.
        log: of an index: only runs in this entry log.
    """

    entries: bool = False
    content: bool = False
    ledger_id: int | None = None
    first_entry: int = 0
    last_entry: int = LAST_ID
    start: int = 0
    end: int = LAST_ID
    log: int | None = None

    @property
    def is_narrowed(self) -> bool:
        """Whether only some ledgers or entries are printed."""
        return self.ledger_id is not None or self.is_by_entry

    @property
    def is_by_entry(self) -> bool:
        """Whether only some entries are printed."""
        return self.first_entry > 0 or self.last_entry < LAST_ID

    def holds_ledger(self, ledger_id: int) -> bool:
        """Whether facts of this ledger are printed."""
        return self.ledger_id is None or ledger_id == self.ledger_id

    def holds(self, ledger_id: int, first: int, last: int) -> bool:
        """Whether any of these entries is printed."""
        return self.holds_ledger(ledger_id) and first <= self.last_entry and last >= self.first_entry


def entry_line(offset: int, ledger_id: int, entry_id: int, entry: bytes, choice: DumpChoice, **more: object) -> DumpLine:
    """The line of an entry.

    Args:
        offset: where the entry begins. entry: header, digest and payload.
    """
    facts: dict[str, object] = {"ledger": ledger_id, "entry": entry_id, "bytes": len(entry), **more}
    if len(entry) >= HEADER_BYTES:
        found_ledger, found_entry, lac, length = ENTRY_HEADER.unpack_from(entry)
        facts.update(last_add_confirmed=lac, length=length)
        if (found_ledger, found_entry) != (ledger_id, entry_id):
            facts["problem"] = f"its header names entry {found_entry} of ledger {found_ledger}"
    else:
        facts["problem"] = f"it is shorter than the {HEADER_BYTES} bytes of its header"
    if choice.content:
        facts["content_base64"] = base64.b64encode(entry[HEADER_BYTES:]).decode("ascii")
    return DumpLine(LineKind.ENTRY, offset, facts)


def damage_line(offset: int | None, end: int | None, reason: str) -> DumpLine:
    """The line of a damaged range. `end`: where the dump goes on; None: nowhere."""
    return DumpLine(LineKind.DAMAGE, offset, {"end": end, "reason": reason})


def refuse_foreign_file(head: bytes, path: str) -> None:
    """Check that a file is not of an Apache bookie.

    Raises:
        FormatError: it is.
    """
    known = FOREIGN_MAGIC.get(head[:4])
    if known is not None:
        kind, command = known
        raise FormatError(
            f"{path}: {kind} of an Apache bookie, and this command reads only Triplicate's own formats (docs/formats): use "
            f"`bookkeeper shell {command}`"
        )
