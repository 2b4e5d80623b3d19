"""Which bookies a client reads last because they are slow or fail, and when one is trusted again. Pure: the caller passes the time.

A bookie that is slow or fails is in quarantine: its copies are read last, and new ensembles avoid it. When the quarantine time is over, one
read of an entry that is read elsewhere, too, probes the bookie. An answer in time ends the quarantine; otherwise it lasts twice as long.

Source: BookKeeper `RackawareEnsemblePlacementPolicyImpl.reorderReadSequence`, `BookieWatcherImpl.quarantineBookie`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

STRIKES_NEEDED = 4
"""Reads in a row that are late or refused before a bookie is in quarantine."""
STRIKE_SPACING_S = 0.002
"""Late reads within this time count once, because one pause delays all reads in flight. In seconds."""
FORGIVEN_TIMES = 2.0
"""The quarantine time starts over once a bookie has been healthy for this many of its last quarantine times."""
FORGOTTEN_S = 3600.0
"""A bookie that nothing was read from is forgotten after this time, in seconds."""


class Ailment(IntEnum):
    """Why a bookie is in quarantine; the greater is read from later."""

    SLOW = 1
    FAILING = 2


@dataclass(slots=True)
class _Quarantine:
    """The present or last quarantine of a bookie."""

    ailment: Ailment
    time_s: float
    until: float
    """The end of the quarantine time; the quarantine itself ends with a probe."""
    is_probed: bool = False
    ended_at: float | None = None


class BookieHealth:
    """The health of the bookies that one client reads from.

    Args:
        first_s, maximum_s: shortest and longest quarantine time, in seconds.
    """

    def __init__(self, first_s: float, maximum_s: float) -> None:
        self.version = 0
        """Grows with every change of `order`."""
        self._first_s = first_s
        self._maximum_s = max(first_s, maximum_s)
        self._strikes: dict[str, int] = {}
        self._struck_at: dict[str, float] = {}
        self._quarantines: dict[str, _Quarantine] = {}
        """Also ended ones, until they are forgiven."""
        self._ranks: dict[str, int] = {}
        """Of the bookies in quarantine."""

    # The event.

    def answered(self, bookie_id: str) -> None:
        """The bookie answered a read in time."""
        if self._strikes:
            self._strikes.pop(bookie_id, None)
            self._struck_at.pop(bookie_id, None)

    def strike(self, bookie_id: str, ailment: Ailment, now: float) -> bool:
        """A read was late, or refused by an answer that says nothing of the entry. Returns whether the quarantine begins with it."""
        if bookie_id in self._ranks or now < self._struck_at.get(bookie_id, float("-inf")) + STRIKE_SPACING_S:
            return False
        self._struck_at[bookie_id] = now
        self._strikes[bookie_id] = self._strikes.get(bookie_id, 0) + 1
        return self._strikes[bookie_id] >= STRIKES_NEEDED and self.quarantine(bookie_id, ailment, now)

    def quarantine(self, bookie_id: str, ailment: Ailment, now: float) -> bool:
        """A read failed without an answer, or was not answered for long. Returns whether the quarantine begins with it."""
        if bookie_id in self._ranks:
            return False
        self.answered(bookie_id)
        self._forget(now)
        last = self._quarantines.get(bookie_id)
        time_s = self._first_s if last is None else min(self._maximum_s, 2 * last.time_s)
        self._quarantines[bookie_id] = _Quarantine(ailment, time_s, now + time_s)
        self._ranks[bookie_id] = ailment
        self.version += 1
        return True

    def begin_probe(self, bookie_ids: Sequence[str], now: float) -> str | None:
        """The first of these bookies for which a probe is due; it then counts as in flight."""
        for bookie_id in bookie_ids:
            if bookie_id in self._ranks:
                quarantine = self._quarantines[bookie_id]
                if now >= quarantine.until and not quarantine.is_probed:
                    quarantine.is_probed = True
                    return bookie_id
        return None

    def end_probe(self, bookie_id: str, ailment: Ailment | None, now: float) -> bool:
        """Record the result of a probe; `ailment` is None when it was answered in time. Returns whether the quarantine ends."""
        quarantine = self._quarantines[bookie_id]
        quarantine.is_probed = False
        if ailment is None:
            quarantine.ended_at = now
            del self._ranks[bookie_id]
        else:
            quarantine.time_s = min(self._maximum_s, 2 * quarantine.time_s)
            quarantine.until = now + quarantine.time_s
            quarantine.ailment = ailment
            self._ranks[bookie_id] = ailment
        self.version += 1
        return ailment is None

    # The consequences.

    @property
    def is_sound(self) -> bool:
        """Whether no bookie is in quarantine."""
        return not self._ranks

    def rank(self, bookie_id: str) -> int:
        """The order in which bookies are read: 0 for a healthy one, then slow, then failing ones."""
        return self._ranks.get(bookie_id, 0)

    def order(self, bookie_ids: Sequence[str]) -> list[str]:
        """These bookies by `rank`, otherwise as given."""
        return sorted(bookie_ids, key=self.rank) if self._ranks else list(bookie_ids)

    def avoided(self, now: float) -> list[str]:
        """The bookies that new ensembles avoid: those whose quarantine time is not over. A client that reads nothing probes nothing."""
        return [bookie_id for bookie_id in self._ranks if now < self._quarantines[bookie_id].until]

    def _forget(self, now: float) -> None:
        """Drop the quarantines that are forgiven, and those of bookies that nothing was read from for long."""
        for bookie_id, last in list(self._quarantines.items()):
            if last.ended_at is not None:
                is_over = now > last.ended_at + FORGIVEN_TIMES * last.time_s
            else:
                is_over = not last.is_probed and now > last.until + FORGOTTEN_S
            if is_over:
                del self._quarantines[bookie_id]
                self._ranks.pop(bookie_id, None)
