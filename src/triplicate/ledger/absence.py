"""For how long bookies have not been registered. Pure: the caller passes the time."""

from __future__ import annotations

from collections.abc import Collection


class Absences:
    """The bookies that are in use and not registered.

    A bookie whose session ended may still serve, and a restart takes seconds. Only an absence that lasts says that a bookie is lost.

    Args:
        limit_s: time after which an absent bookie is lost, in seconds.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._since: dict[str, float] = {}

    def observe(self, used: Collection[str], registered: Collection[str], now: float) -> list[str]:
        """The bookies in use that are lost, sorted by id. A bookie that is registered, or not in use, is forgotten."""
        self._since = {bookie_id: self._since.get(bookie_id, now) for bookie_id in used if bookie_id not in registered}
        return sorted(bookie_id for bookie_id, since in self._since.items() if now - since >= self._limit_s)
