"""The rolling policy: when the writer of a log prepares its next ledger, and when it rolls to the next segment.

The next ledger is created before the present one is closed, so a failed preparation costs nothing: the segment grows until a roll succeeds.
That growth is not limited: no field of a format would overflow, and a limit would stop a writer whose ledger accepts entries.
All times are of the monotonic clock and are passed in.
"""

from __future__ import annotations

from enum import Enum

from triplicate.config.log_settings import LogSettings

PREPARE_SHARE = 0.75
"""The next ledger is created when the segment has this share of its final size."""
PREPARE_BEFORE_S = 30.0
"""The next ledger is created this long before the segment has its final age, at most a quarter of that age."""
CHECKED_S = 1.0
"""Before a roll, the metadata must have confirmed within this time that the log is still this writer's."""
HOLD_S = 0.25
"""How long a segment that has reached its size holds entries back, once, while the next ledger is being created, in seconds."""
NEVER_BYTES = 2**62


class RollStep(Enum):
    STAY = "stay"
    HOLD = "hold"
    """Send nothing: the roll is about to begin."""
    PREPARE = "prepare"
    """Create the next ledger, and check in the metadata that the log is still this writer's."""
    PREPARE_FULL = "prepare full"
    """As `PREPARE`; the next ledger must have all copies."""
    ROLL = "roll"


class RollingPolicy:
    """The policy of one writer. `step` returns the next step; the caller reports its result by `preparing`, `prepared`, `failed`, `begin`.

    Args:
        reduced_retry_s: age at which the writer first tries to leave a segment with fewer copies, and the pause between attempts.
        spare_age_s: a next ledger older than this is not used, since a sweep of orphans may delete it.
    """

    def __init__(self, log: LogSettings, reduced_retry_s: float, spare_age_s: float) -> None:
        self._roll_bytes = log.roll_size_bytes
        self._age_s = log.roll_age_s
        self._reduced_retry_s = reduced_retry_s
        self._spare_age_s = spare_age_s
        self._age_at = 0.0
        self._full_at: float | None = None
        """When to try to leave a segment with fewer copies; None in a segment with all copies."""
        self._not_before = 0.0
        self._checked_at: float | None = None
        self._spare_at: float | None = None
        self._spare_is_full = False
        self._is_preparing = False
        self._hold_until: float | None = None
        """The end of the hold; None before the segment has reached its size."""
        self._is_put_off = False
        self._is_requested = False

    def adopt(self, log: LogSettings) -> None:
        """The log has these settings from its next segment on."""
        self._roll_bytes, self._age_s = log.roll_size_bytes, log.roll_age_s

    def begin(self, now: float, *, reduced: bool) -> None:
        """A segment has begun; the next ledger, if there was one, is used."""
        self._age_at = now + self._age_s
        self._full_at = now + self._reduced_retry_s if reduced else None
        self._checked_at = self._spare_at = None
        self._spare_is_full = False
        self._not_before = now
        self._hold_until, self._is_put_off = None, False
        self._is_requested = False

    def request(self) -> None:
        """Request a roll as soon as the next ledger exists, regardless of the segment's size, age and records."""
        self._is_requested = True

    def preparing(self) -> None:
        """A preparation has begun; `prepared` or `failed` reports its end."""
        self._is_preparing = True

    def prepared(self, now: float, made_at: float | None, *, full: bool) -> None:
        """The next ledger exists, and the log was this writer's just now.

        Args:
            made_at: when the ledger was created; None if it was used meanwhile.
            full: whether it has all copies.
        """
        self._is_preparing = False
        self._spare_at, self._spare_is_full = made_at, full and made_at is not None
        self._checked_at = now if made_at is not None else None

    def failed(self, now: float, pause_s: float, *, full: bool) -> None:
        """The preparation failed: the roll is postponed, and the next attempt follows after a pause.

        Args:
            full: the failed step was `PREPARE_FULL`, whose next attempt follows after `reduced_retry_s`.
        """
        self._is_preparing = False
        if full:
            self._full_at = now + self._reduced_retry_s
        else:
            self._not_before = now + pause_s
            self._is_put_off = True

    def step(self, now: float, size_bytes: int, *, has_records: bool) -> RollStep:
        """The next step for an open segment of this size."""
        if not has_records and now >= self._age_at:
            self._age_at = now + self._age_s
        if size_bytes >= self._roll_bytes and self._hold_until is None:
            self._hold_until = now + HOLD_S
        if self._is_preparing:
            return RollStep.HOLD if self._is_holding(now) else RollStep.STAY
        is_raised = self._full_at is not None and now >= self._full_at
        if is_raised and not (self._spare_is_full and self._has_spare(now)):
            return RollStep.PREPARE_FULL
        if now < self._not_before:
            return RollStep.STAY
        if is_raised or self._is_requested or size_bytes >= self._roll_bytes or (has_records and now >= self._age_at):
            is_checked = self._checked_at is not None and now - self._checked_at <= CHECKED_S
            return RollStep.ROLL if is_checked and self._has_spare(now) else RollStep.PREPARE
        is_near = size_bytes >= self._near_bytes or (has_records and now >= self._near_at)
        return RollStep.PREPARE if is_near and self._spare_at is None else RollStep.STAY

    def check_bytes(self, now: float) -> int:
        """The segment size from which on `step` must be called again. Below it, only time changes the result."""
        if self._is_preparing:
            return self._roll_bytes if self._hold_until is None or self._is_holding(now) else NEVER_BYTES
        if now < self._not_before:
            return NEVER_BYTES
        return self._near_bytes if self._spare_at is None else self._roll_bytes

    def check_at(self, now: float) -> float:
        """The time at which `step` must be called again at the latest."""
        moments = [self._not_before, self._near_at, self._age_at]
        moments += [moment for moment in (self._full_at, self._hold_until) if moment is not None]
        return min((moment for moment in moments if moment > now), default=now + self._age_s)

    @property
    def _near_bytes(self) -> int:
        return int(self._roll_bytes * PREPARE_SHARE)

    @property
    def _near_at(self) -> float:
        return self._age_at - min(PREPARE_BEFORE_S, self._age_s / 4)

    def _is_holding(self, now: float) -> bool:
        return self._hold_until is not None and now < self._hold_until and not self._is_put_off

    def _has_spare(self, now: float) -> bool:
        return self._spare_at is not None and now - self._spare_at <= self._spare_age_s
