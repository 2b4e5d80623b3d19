"""The interface of a replicated state machine to the replica that drives it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from triplicate.log import LogEntry, LogWriter

STANDS_AT = "this copy stands at"
"""Prefix of every reason that concerns the position of a copy in the log and not its content. Such a copy may be correct and is verified
against the log before it serves again. Reasons are stored, so the prefix is part of the format."""


class Role(Enum):
    """The present role of a replica."""

    STARTING = "starting"
    FOLLOWER = "follower"
    CANDIDATE = "candidate"
    """Elected, and taking the log over."""
    LEADER = "leader"
    DIVERGED = "diverged"
    """This copy is wrong; it neither serves nor follows."""
    STOPPED = "stopped"


class StateMachine(Protocol):
    """A deterministic state that only the log changes. The replica calls one method at a time."""

    @property
    def position(self) -> int:
        """Offset after the last record that is part of the state."""

    @property
    def suspicion(self) -> str | None:
        """Why the copy must be verified before it serves, or None. Set where it was given up for its position (`STANDS_AT`). Valid after
        `open`."""

    async def open(self) -> int:
        """Open the local state. Returns its position: the offset after the last record applied.

        Raises:
            Diverged: this copy was found to be wrong before, or is damaged. EnvironmentFault: it cannot be opened now.
        """

    async def verify(self, entry: LogEntry | None) -> None:
        """Compare the entry before `position` with what this copy applied last. If they agree, `suspicion` is cleared.

        Args:
            entry: the entry whose last record is before `position`; None if the position is 0.

        Raises:
            Diverged: they differ.
        """

    async def follow(self) -> int:
        """Return to what is stored locally and prepare to apply; returns the position. Called before the first `apply` and after each
        leadership.

        Raises:
            Diverged: the copy is damaged. EnvironmentFault: it is not possible now; the replica retries.
        """

    async def apply(self, entries: Sequence[LogEntry]) -> int:
        """Apply entries in order and store the position with them, all or none. Entries applied already are skipped. Returns the position.

        Control entries are included; a segment header marks the begin of an epoch.

        Raises:
            Diverged: the state differs from the leader's. EnvironmentFault: it is not possible now (the disk is full); the replica retries.
        """

    async def lead(self, writer: LogWriter) -> None:
        """Lead until an error or a cancellation ends the leadership. Everything before the writer's `start_offset` is applied.

        Afterwards nothing may be visible that the log has not acknowledged. Cancelled when the node stops.
        """

    async def diverge(self, reason: str) -> None:
        """Record that this copy is wrong, and stop serving it."""

    async def close(self) -> None:
        """Release all resources. Idempotent."""
