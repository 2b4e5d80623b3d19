"""How long each server of the metadata service may take to answer a new connection, and which servers are passed over. Pure.

A machine that hangs or is cut off accepts connections, or drops them, and answers nothing. A client that tries its servers one after the
other must neither wait long for such a one, nor wait for it again in every turn: meanwhile another server may answer. A server that is
only slow gets more time with each attempt.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

Server = TypeVar("Server", bound=Hashable)

GROWTH = 4
"""After a wait in vain, the next wait for the same server is this many times as long."""
PASSED_OVER_WAITS = 4
"""A server is passed over for this many times its wait in vain, while there are others."""
FORGOTTEN_WAITS = 16
"""A wait in vain is forgotten after this many times its length and `FORGOTTEN_S`."""
FORGOTTEN_S = 30.0


class ServerPatience(Generic[Server]):
    """The silences of one client's servers. Times are seconds of one monotonic clock.

    Args:
        first_s: the first wait for a server.
        longest_s: the longest wait.
    """

    def __init__(self, first_s: float, longest_s: float) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._waits: dict[Server, tuple[float, float]] = {}
        """Of servers that were waited for in vain: the length of the last wait, and its end."""

    def limit_s(self, server: Server, now: float) -> float:
        """How long to wait for an answer of a server."""
        waited_s, ended = self._waits.get(server, (0.0, 0.0))
        if not waited_s or now > ended + FORGOTTEN_WAITS * waited_s + FORGOTTEN_S:
            return self._first_s
        return min(GROWTH * waited_s, self._longest_s)

    def waited_in_vain(self, server: Server, now: float) -> None:
        """A server has not answered within its limit."""
        self._waits[server] = self.limit_s(server, now), now

    def answered(self, server: Server) -> None:
        """A server has answered."""
        self._waits.pop(server, None)

    def to_try(self, servers: Sequence[Server], now: float) -> list[Server]:
        """The servers to try in this turn, in the given order: without those that are passed over, unless all are."""
        return [server for server in servers if not self._is_passed_over(server, now)] or list(servers)

    def _is_passed_over(self, server: Server, now: float) -> bool:
        waited_s, ended = self._waits.get(server, (0.0, 0.0))
        return now < ended + PASSED_OVER_WAITS * waited_s
