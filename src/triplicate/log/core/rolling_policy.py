"""When the writer of a log prepares its next ledger, when it goes on in it, and when it stays in the present segment.

The next ledger is created before the present one is closed, so a roll that cannot be done costs nothing: the segment grows until it can.
Nothing limits that growth: no format has a field that it would overflow, and a limit would stop a writer whose ledger takes entries.
All times are of the monotonic clock and come in from outside.
"""

from __future__ import annotations

from enum import Enum

from triplicate.config.log_settings import LogSettings

PREPARE_SHARE = 0.75
"""The next ledger is created when the segment has this share of its final size."""
PREPARE_BEFORE_S = 30.0
"""It is created so long before the segment has its final age, at most a quarter of that age."""
CHECKED_S = 1.0
"""A roll begins only when the metadata answered so shortly before that the log is still this writer's."""
HOLD_S = 0.25
"""A segment that reached its size while the next ledger is about to be there holds its entries back, once and at most so long."""
NEVER_BYTES = 2**62


class RollStep(Enum):
    STAY = "stay"
    HOLD = "hold"
    """Send nothing: the roll is about to begin."""
    PREPARE = "prepare"
    """Have a next ledger, and ask the metadata whether the log is still this writer's."""
    PREPARE_FULL = "prepare full"
    """The same, and the next ledger must have all copies."""
    ROLL = "roll"


class RollingPolicy:
    """One writer's plan. Drive it with `step`, and tell it what came of each step.

    Args:
        reduced_retry_s: how old a segment with fewer copies must be before the writer tries to leave it, and the pause between trials.
        spare_age_s: an unused next ledger that is older is not used, since a sweep of orphans may be about to delete it.
    """

    def __init__(self, log: LogSettings, reduced_retry_s: float, spare_age_s: float) -> None:
        self._roll_bytes = log.roll_size_bytes
        self._age_s = log.roll_age_s
        self._reduced_retry_s = reduced_retry_s
        self._spare_age_s = spare_age_s
        self._age_at = 0.0
        self._full_at: float | None = None
        """When to try to leave a segment with fewer copies; None in a segment with all of them."""
        self._not_before = 0.0
        self._checked_at: float | None = None
        self._spare_at: float | None = None
        self._spare_is_full = False
        self._is_preparing = False
        self._hold_until: float | None = None
        """None before the segment reached its size, or once its roll has been put off."""
        self._is_put_off = False
        self._is_asked = False

    def begin(self, now: float, *, reduced: bool) -> None:
        """A segment has begun; the next ledger, if there was one, is used."""
        self._age_at = now + self._age_s
        self._full_at = now + self._reduced_retry_s if reduced else None
        self._checked_at = self._spare_at = None
        self._spare_is_full = False
        self._not_before = now
        self._hold_until, self._is_put_off = None, False
        self._is_asked = False

    def request(self) -> None:
        """The segment is to end as soon as the next ledger is there, whatever its size and age, and even without records."""
        self._is_asked = True

    def preparing(self) -> None:
        """A preparation runs; its end is told by `prepared` or `failed`."""
        self._is_preparing = True

    def prepared(self, now: float, made_at: float | None, *, full: bool) -> None:
        """There is a next ledger, and the log was this writer's a moment ago.

        Args:
            made_at: when the ledger was created; None if it was used meanwhile.
            full: it has all the copies that the log asks for.
        """
        self._is_preparing = False
        self._spare_at, self._spare_is_full = made_at, full and made_at is not None
        self._checked_at = now if made_at is not None else None

    def failed(self, now: float, pause_s: float, *, full: bool) -> None:
        """The preparation failed. The roll is put off, the next trial comes after a pause; of a full one, after its own."""
        self._is_preparing = False
        if full:
            self._full_at = now + self._reduced_retry_s
        else:
            self._not_before = now + pause_s
            self._is_put_off = True

    def step(self, now: float, size_bytes: int, *, has_records: bool) -> RollStep:
        """What to do now, in a segment of this size that takes entries."""
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
        if is_raised or self._is_asked or size_bytes >= self._roll_bytes or (has_records and now >= self._age_at):
            is_checked = self._checked_at is not None and now - self._checked_at <= CHECKED_S
            return RollStep.ROLL if is_checked and self._has_spare(now) else RollStep.PREPARE
        is_near = size_bytes >= self._near_bytes or (has_records and now >= self._near_at)
        return RollStep.PREPARE if is_near and self._spare_at is None else RollStep.STAY

    def check_bytes(self, now: float) -> int:
        """The size of the segment from which on `step` must be asked again; before it only time changes the answer."""
        if self._is_preparing:
            return self._roll_bytes if self._hold_until is None or self._is_holding(now) else NEVER_BYTES
        if now < self._not_before:
            return NEVER_BYTES
        return self._near_bytes if self._spare_at is None else self._roll_bytes

    def check_at(self, now: float) -> float:
        """When `step` must be asked again whatever happens."""
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
