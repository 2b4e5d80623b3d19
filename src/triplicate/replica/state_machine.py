"""The interface of a replicated state machine to the replica that drives it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol

from triplicate.log import LogEntry, LogWriter

STANDS_AT = "this copy stands at"
"""Prefix of each reason that concerns a copy's position in the log and not its content. Such a copy may be correct, and is compared with
the log before it serves again. Reasons are stored, so the prefix is part of the format."""


class Role(Enum):
    """The present role of a replica."""

    STARTING = "starting"
    FOLLOWER = "follower"
    CANDIDATE = "candidate"
    """Elected, and taking the log over. Its clients are still those of a follower."""
    LEADER = "leader"
    DIVERGED = "diverged"
    """This copy is wrong. It neither serves nor follows."""
    STOPPED = "stopped"


def is_position_mismatch(reason: str) -> bool:
    """Whether a copy was given up because of its position in the log, so that its content may be correct."""
    return reason.startswith(STANDS_AT)


class StateMachine(Protocol):
    """A deterministic state that only the log changes. The replica calls one method at a time."""

    @property
    def position(self) -> int:
        """Offset after the last record that is part of the state."""

    @property
    def suspicion(self) -> str | None:
        """Why the copy must be verified before it serves, or None. Valid after `open`.

        It is set if the copy was given up because of its position (`STANDS_AT`).
        """

    async def open(self) -> int:
        """Open the local state. Returns its position: the offset after the last record applied.

        Raises:
            Diverged: this copy is marked as wrong, or is damaged. EnvironmentFault: a later attempt may succeed.
        """

    async def verify(self, entry: LogEntry | None) -> None:
        """Compare the entry before `position` with the batch that this copy applied last. If they are equal, clear `suspicion`.

        Args:
            entry: the entry whose last record is before `position`; None if the position is 0.

        Raises:
            Diverged: they differ.
        """

    async def follow(self) -> int:
        """Return to the stored state and prepare to apply. Called before the first `apply` and after each leadership.

        Returns:
            The position.

        Raises:
            Diverged: the copy is damaged. EnvironmentFault: the replica tries again.
        """

    async def apply(self, entries: Sequence[LogEntry]) -> int:
        """Apply entries in order and store the position with them, all or none. Entries applied already are skipped. Returns the position.

        Control entries are included. A segment header marks the beginning of an epoch.

        Raises:
            Diverged: the state differs from the leader's. EnvironmentFault: the disk is full or fails; the replica tries again.
        """

    async def lead(self, writer: LogWriter, serves: Callable[[], None]) -> None:
        """Lead until an error or a cancellation ends the leadership. All records before the writer's `start_offset` are applied.

        Afterwards, no change may be visible that the log has not acknowledged. Cancelled when the node stops.

        Args:
            serves: called once, on the loop, when clients can use this copy as the leader's.
        """

    async def diverge(self, reason: str) -> None:
        """Record that this copy is wrong, and stop serving it."""

    async def close(self) -> None:
        """Release all resources. Idempotent."""
