"""Which lost bookies are to be audited, and when.

A bookie is lost while it is known, by its cookie or by a ledger, and is registered neither as writable nor as read-only. It is audited
after the delay, so that one that returns in time costs nothing. If several bookies leave, they are audited without delay, because a
further loss may take the last copy of an entry. Bookies that have not been registered since this auditor's election are not counted
for this rule: a cluster that starts is not a cluster that fails.

Source: BookKeeper `Auditor.submitAuditTask`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

RECORD_AGE_S = 60.0
"""A record of absences counts while it is younger than this, or than the delay if that is longer."""
RECORD_SHARE = 0.1
RECORD_LEAST_S = 1.0
RECORD_MOST_S = 10.0

SEVERAL = 2
"""Number of bookies that have left at which the delay does not apply."""


@dataclass(frozen=True, slots=True)
class Absence:
    """The absence of a bookie.

    Args:
        since: when it was first seen to be absent, in seconds of a monotonic clock; earlier by the time that other auditors saw it absent.
        has_left: whether it was registered before, in the term of this auditor.
    """

    since: float
    has_left: bool


class LostBookies:
    """The lost bookies that were not audited yet, in one auditor's term."""

    def __init__(self) -> None:
        self._seen: dict[str, None] = {}
        """Bookies that were registered in this term."""
        self._absent: dict[str, Absence] = {}
        self._audited: dict[str, None] = {}
        self._seen_before: dict[str, float] = {}
        """Seconds that earlier auditors saw bookies absent, until the first observation."""

    def resume(self, absent_s: Mapping[str, float]) -> None:
        """Continue the count of an earlier auditor with the next observation.

        Args:
            absent_s: the seconds that bookies were seen absent.
        """
        self._seen_before = dict(absent_s)

    def absences(self, now: float) -> dict[str, float]:
        """The seconds that the bookies that wait for their audit were seen absent, by earlier auditors as well."""
        return self._seen_before | {bookie_id: now - absence.since for bookie_id, absence in self._absent.items()}

    @property
    def waiting(self) -> tuple[str, ...]:
        """The lost bookies that wait for their audit."""
        return tuple(self._absent)

    def observe(self, now: float, known: Collection[str], registered: Collection[str]) -> tuple[str, ...]:
        """Record the present state.

        Args:
            now: seconds of a monotonic clock.
            known: bookies that have a cookie or are named by a ledger.
            registered: the writable and the read-only bookies.

        Returns:
            The bookies that have returned before their audit.
        """
        returned = self.returned(registered)
        for bookie_id in (*known, *self._seen):
            if bookie_id not in registered and bookie_id not in self._audited and bookie_id not in self._absent:
                self._absent[bookie_id] = Absence(now - self._seen_before.get(bookie_id, 0.0), bookie_id in self._seen)
        self._seen_before.clear()
        return returned

    def returned(self, registered: Collection[str]) -> tuple[str, ...]:
        """Record that these bookies are registered; return those of them that were absent, and not audited. No absence begins."""
        returned = tuple(bookie_id for bookie_id in self._absent if bookie_id in registered)
        for bookie_id in registered:
            self._seen[bookie_id] = None
            self._absent.pop(bookie_id, None)
            self._audited.pop(bookie_id, None)
            self._seen_before.pop(bookie_id, None)
        return returned

    def due(self, now: float, delay_s: float) -> tuple[str, ...]:
        """The bookies to audit now. If a bookie is due, others that wait for their delay are left out."""
        several = sum(absence.has_left for absence in self._absent.values()) >= SEVERAL
        return tuple(
            bookie_id for bookie_id, absence in self._absent.items() if now >= absence.since + delay_s or (several and absence.has_left)
        )

    def next_due(self, delay_s: float) -> float | None:
        """When the next bookie is due, in seconds of the monotonic clock; None if none is lost."""
        return min((absence.since + delay_s for absence in self._absent.values()), default=None)

    def audited(self, bookie_ids: Collection[str]) -> None:
        """Record that the ledgers of these bookies are marked."""
        for bookie_id in bookie_ids:
            self._absent.pop(bookie_id, None)
            self._seen.pop(bookie_id, None)
            self._audited[bookie_id] = None

    def audit_again(self) -> None:
        """Let every bookie that is still lost be audited once more, after the delay."""
        self._audited.clear()


def may_resume(now_ms: int, written_ms: int, delay_s: float) -> bool:
    """Whether a record of absences is young enough to count. One from the future is of a clock that differs, and does not count."""
    return 0 <= now_ms - written_ms <= 1000 * max(RECORD_AGE_S, delay_s)


def record_interval_s(delay_s: float) -> float:
    """The time between two writes of the record, so that an auditor that ends loses at most this much of the delay."""
    return min(RECORD_MOST_S, max(RECORD_LEAST_S, delay_s * RECORD_SHARE))
