"""Memory that all connections share: bytes of incomplete frames, and answers that peers have not read.

**Frames.** A connection reserves room for the whole frame that it has begun to receive, so every connection that is read can complete its
frame. A connection without room is not read. While others wait, a connection that is read and stops sending in the middle of a frame is
closed. Once the bound itself has arrived, only connections with a reservation are read, so memory exceeds twice the bound by at most a
chunk.

**Answers.** Each connection may have a share of the bound waiting in its socket's buffer. The share grows when there are fewer
connections. Beyond it, the connection is not read and its reads wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from triplicate.config import BookieSettings
from triplicate.runtime import Clock, Timer

STALE_S = 10.0
"""A connection whose unfinished frame received no byte for this time is closed while others wait, in seconds."""
LOOK_S = 1.0


class Receiving(Protocol):
    """A connection with its unfinished frame. Only the budget changes these fields."""

    frame_held: int
    """Bytes received."""
    frame_reserved: int
    frame_since: float
    """When the last of them arrived."""

    @property
    def is_read(self) -> bool:
        """Whether data of the peer is being read."""

    def pause_frames(self) -> None: ...

    def resume_frames(self) -> None: ...

    def drop(self, reason: str) -> None:
        """Close it."""


class FrameBudget:
    """See the module's text."""

    def __init__(self, clock: Clock, limit_bytes: int, all_connections: Mapping[int, Receiving]) -> None:
        """
        Args:
            all_connections: kept up to date by the caller.
        """
        self.held_bytes = 0
        """Bytes of unfinished frames, and of whole frames not yet handled."""
        self.reserved_bytes = 0
        self._clock = clock
        self._limit = limit_bytes
        self._of: dict[int, Receiving] = {}
        """Connections with a reservation."""
        self._connections = all_connections
        self._waiting: dict[int, tuple[Receiving, int]] = {}
        self._paused: dict[int, Receiving] = {}
        """Connections without a reservation that are not read because the bound is reached."""
        self._all_paused = False
        """Whether all connections without a reservation were paused since the bound was passed. Later ones are paused one by one."""
        self._is_resuming = False
        self._timer: Timer | None = None

    @property
    def waiting(self) -> int:
        """Number of connections that are not read for lack of room."""
        return len(self._waiting) + len(self._paused)

    def join(self, connection: Receiving) -> None:
        """A connection was opened."""
        if self.held_bytes > self._limit:
            self._pause(connection)

    def record(self, connection: Receiving, held: int, wanted: int) -> None:
        """Record a connection's state after a chunk.

        Args:
            held: bytes held of the connection.
            wanted: size of the frame that they begin with.
        """
        if not held and not connection.frame_held:
            return
        self.held_bytes += held - connection.frame_held
        connection.frame_held = held
        connection.frame_since = self._clock.monotonic()
        needed = max(held, wanted) if held else 0
        if needed > connection.frame_reserved and not self._fits(connection, needed):
            self._reserve(connection, 0)
            self._paused.pop(id(connection), None)
            self._waiting[id(connection)] = connection, needed
            connection.pause_frames()
            self._check_later()
        else:
            self._reserve(connection, needed)
        if self.held_bytes > self._limit:
            if self._all_paused:
                self._pause(connection)
            else:
                self._all_paused = True
                for other in list(self._connections.values()):
                    self._pause(other)
        self._resume_waiting()

    def forget(self, connection: Receiving) -> None:
        """The connection is gone."""
        self._waiting.pop(id(connection), None)
        self._paused.pop(id(connection), None)
        self.held_bytes -= connection.frame_held
        connection.frame_held = 0
        self._reserve(connection, 0)
        self._resume_waiting()

    def _pause(self, connection: Receiving) -> None:
        if not connection.frame_reserved and id(connection) not in self._waiting and id(connection) not in self._paused:
            self._paused[id(connection)] = connection
            connection.pause_frames()
            self._check_later()

    def _resume_waiting(self) -> None:
        """Resume the connections for which there is room now.

        A resumed connection may complete a frame and call this again. That inner call returns at once and the loop here continues, since
        nested calls for many connections would exceed Python's recursion limit.
        """
        if self._is_resuming:
            return
        self._is_resuming = True
        try:
            while self._resume_next():
                pass
        finally:
            self._is_resuming = False

    def _resume_next(self) -> bool:
        """Resume the next connection, if there is room; returns whether one was resumed. Those that wait for a reservation come first."""
        if self._waiting:
            key, (connection, needed) = next(iter(self._waiting.items()))
            if not self.reserved_bytes or self.reserved_bytes + needed <= self._limit:
                del self._waiting[key]
                self._reserve(connection, needed)
                connection.frame_since = self._clock.monotonic()
                connection.resume_frames()
                return True
        if self.held_bytes > self._limit:
            return False
        self._all_paused = False
        if self._paused:
            self._paused.pop(next(iter(self._paused))).resume_frames()
            return True
        return False

    def _fits(self, connection: Receiving, needed: int) -> bool:
        others = self.reserved_bytes - connection.frame_reserved
        # One frame always fits, however small the bound.
        return others == 0 or (not self._waiting and others + needed <= self._limit)

    def _reserve(self, connection: Receiving, size: int) -> None:
        self.reserved_bytes += size - connection.frame_reserved
        connection.frame_reserved = size
        if size:
            self._of[id(connection)] = connection
        else:
            self._of.pop(id(connection), None)

    def _check_later(self) -> None:
        if self._timer is None:
            self._timer = self._clock.call_at(self._clock.monotonic() + LOOK_S, self._check_stale)

    def _check_stale(self) -> None:
        self._timer = None
        if not self.waiting:
            return
        now = self._clock.monotonic()
        for connection in list(self._of.values()):
            if connection.is_read and now - connection.frame_since >= STALE_S:
                connection.drop("a frame was begun and not finished while others waited")
        self._check_later()

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class AnswerShares:
    """The number of bytes of answers that one connection may have waiting."""

    def __init__(self, settings: BookieSettings) -> None:
        self._total = settings.answers_waiting_bytes
        self._most = settings.answers_per_connection_bytes
        self._sharers = 1

    def resize(self, connections: int) -> bool:
        """Set the number of connections. Returns whether the share changed, which happens when the number has doubled or halved."""
        before = self.share_bytes
        while self._sharers < connections:
            self._sharers *= 2
        while self._sharers > 1 and self._sharers >= 4 * connections:
            self._sharers //= 2
        return self.share_bytes != before

    @property
    def share_bytes(self) -> int:
        return max(1, min(self._most, self._total // self._sharers))
