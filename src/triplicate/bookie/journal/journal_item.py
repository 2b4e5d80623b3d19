"""The items that wait for a journal: bytes to make durable, and the responses that depend on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from triplicate.bookie.core.checksum import Buffer
from triplicate.bookie.core.journal_format import GroupPosition, GroupType


class ResponseSink(Protocol):
    """Receives the responses of a group: one call for all of them."""

    def answer(self, data: bytes) -> None: ...


@dataclass(slots=True, eq=False)
class JournalItem:
    """Bytes to make durable, and the actions afterwards."""

    kind: GroupType | None
    """None: nothing to write; everything submitted before is to be synced."""
    buffers: list[Buffer]
    size_bytes: int
    count: int
    peer: ResponseSink | None = None
    answers: bytes = b""
    """Sent to `peer` after the sync."""
    early: bool = False
    """The answers are sent after the write and before the sync. A crash of the machine may lose the entries that they acknowledge."""
    then: Callable[[bool], None] | None = None
    """Called on the loop: True after the sync, False when the journal failed (durable or not: unknown)."""
    refused: Callable[[], None] | None = None
    """Called on the loop when there was no space for the item and the journal continues: sends an error instead of `answers`."""
    submitted_at: float = 0.0
    end: GroupPosition | None = field(default=None, init=False)
    """Where its group ends; set by the device's thread."""
