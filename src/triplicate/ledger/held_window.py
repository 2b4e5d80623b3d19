"""Which bookie holds back a writer that waits for room, and for how long. Pure: the caller passes the state and the time.

A bookie holds the window back if the writer waits for room, the other bookies are ahead of it by half of the entries in flight, and either
the confirmation waits for it, or it owes as many answers as it may. One that is slow without that costs nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from triplicate.errors import NotEnoughBookies
from triplicate.ledger.placement.adherence import ensemble_verdict
from triplicate.ledger.placement.ensemble_choice import RandomSource, replace_bookies
from triplicate.ledger.placement.placement_rules import PlacementRules

LEAD_SHARE = 0.5
"""Share of the unconfirmed entries by which the other bookies must be ahead."""

PAUSE_SHARE = 0.2
"""Share of the limit for which a bookie may stop to hold the window back, since a full channel has room for a moment after each answer."""


def holder_of(acked_through: Mapping[str, int], confirmed: int, pushed: int, full: Collection[str]) -> str | None:
    """The bookie that holds a full window back; None if no single one does.

    Args:
        acked_through: by bookie of the ensemble: the order number up to which it acknowledged everything.
        confirmed, pushed: order numbers of the last confirmed and the last enqueued entry.
        full: bookies that owe as many answers as they may.
    """
    if len(acked_through) < 2:
        return None
    slowest = min(acked_through, key=lambda bookie_id: acked_through[bookie_id])
    lead = min(acked for bookie_id, acked in acked_through.items() if bookie_id != slowest) - acked_through[slowest]
    if lead <= 0 or lead < LEAD_SHARE * (pushed - min(confirmed, acked_through[slowest])):
        return None
    # In a striped ensemble the last of its entries may be up to one round before the confirmed one.
    is_awaited = acked_through[slowest] + len(acked_through) > confirmed
    return slowest if slowest in full or is_awaited else None


def is_replaceable(
    ensemble: Sequence[str], slow: str, writable: Iterable[str], avoid: Collection[str], rules: PlacementRules, rng: RandomSource
) -> bool:
    """Whether a bookie that is not to be avoided can take the place of a slow one, and the rules of placement are kept as well as now."""
    candidates = [bookie_id for bookie_id in writable if bookie_id not in avoid]
    try:
        changed = replace_bookies(ensemble, (ensemble.index(slow),), candidates, rng, (), rules)
    except NotEnoughBookies:
        return False
    return ensemble_verdict(changed, rules).adherence <= ensemble_verdict(tuple(ensemble), rules).adherence


class HeldWindow:
    """Since when the same bookie holds the window back, from samples.

    Args:
        limit_s: time after which the bookie is reported; 0: never. A fifth of it without a sample that names the bookie starts it again.
    """

    __slots__ = ("_holder", "_limit_s", "_seen_at", "_since")

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._holder: str | None = None
        self._since = 0.0
        self._seen_at = 0.0

    @property
    def is_watched(self) -> bool:
        """Whether `sample` ever reports a bookie."""
        return self._limit_s > 0

    def sample(self, holder: str | None, now: float) -> str | None:
        """Record which bookie holds the window back now; return it once it has done so for the limit, and then start over."""
        if holder is None or not self.is_watched:
            return None
        if holder != self._holder or now > self._seen_at + self._limit_s * PAUSE_SHARE:
            self._holder, self._since = holder, now
        self._seen_at = now
        if now < self._since + self._limit_s:
            return None
        self._since = now
        return holder
