"""What a replicated state machine is, seen from the runtime that feeds it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from triplicate.log import LogEntry, LogWriter

STANDS_AT = "this copy stands at"
"""How every reason begins that is about the place of a copy in the log and not about its content. Such a copy may be right, and is
verified against the log before it serves again. The reasons are stored, so the words are part of the format."""


class Role(Enum):
    """What a replica is at the moment."""

    STARTING = "starting"
    FOLLOWER = "follower"
    CANDIDATE = "candidate"
    """Elected, and taking the log over."""
    LEADER = "leader"
    DIVERGED = "diverged"
    """This copy is wrong; it neither serves nor follows."""
    STOPPED = "stopped"


class StateMachine(Protocol):
    """A deterministic state, changed only by the log. The runtime calls one method at a time."""

    @property
    def position(self) -> int:
        """Offset after the last record that is part of the state."""

    @property
    def suspicion(self) -> str | None:
        """Why the copy must be verified before it serves: it was given up for its place in the log (`STANDS_AT`). Known after `open`."""

    async def open(self) -> int:
        """Open the local state; returns its position: the offset after the last record applied.

        Raises:
            Diverged: this copy was found to be wrong before, or is damaged. EnvironmentFault: it cannot be opened now.
        """

    async def verify(self, entry: LogEntry | None) -> None:
        """Compare with the entry before `position` what this copy applied last; where they agree, it is under no suspicion any more.

        Args:
            entry: its last record is the one before `position`; None where the position is 0.

        Raises:
            Diverged: they differ.
        """

    async def follow(self) -> int:
        """Get ready to apply, as stored locally; returns the position. Called before the first `apply` and after each leadership.

        Raises:
            Diverged: the copy is damaged. EnvironmentFault: not now; it is tried again.
        """

    async def apply(self, entries: Sequence[LogEntry]) -> int:
        """Apply entries in order, together with the position, all or none; entries applied already are skipped. Returns the position.

        Control entries come too: they tell that an epoch has begun.

        Raises:
            Diverged: the state is not what the leader's was. EnvironmentFault: not now (the disk is full); it is tried again.
        """

    async def lead(self, writer: LogWriter) -> None:
        """Lead: everything before the writer's `start_offset` is applied. Returns never by itself; whatever it raises ends the
        leadership, after which nothing may be visible that the log has not acknowledged. Cancelled when the node stops.
        """

    async def diverge(self, reason: str) -> None:
        """Remember that this copy is wrong and stop serving it."""

    async def close(self) -> None:
        """Let go of everything; idempotent."""
