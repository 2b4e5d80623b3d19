"""How long the statement of a session has waited, and for what. Pure."""

from __future__ import annotations

from collections.abc import Callable


class StatementWaits:
    """The waits of one session since its statement began, in seconds. For the event loop only.

    Args:
        now: the time of a clock that never goes back, in seconds.
    """

    __slots__ = ("began_s", "log_s", "now", "read_s", "writer_s")

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.began_s = 0.0
        """When the statement began; 0 where nobody counts it."""
        self.clear()

    def clear(self) -> None:
        """The waits until now belong to no later statement."""
        self.writer_s = 0.0
        """For the writer, or for the group before."""
        self.log_s = 0.0
        """For the acknowledgement of the log, from the sending on."""
        self.read_s = 0.0
        """For the level or position of a read, its confirmation by the log, a reading connection, or a copy of the past."""
