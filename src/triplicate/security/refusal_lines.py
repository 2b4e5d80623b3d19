"""The lines of refused logins in the audit log, at a limited rate."""

from __future__ import annotations

from collections.abc import Mapping

from triplicate.runtime import Clock
from triplicate.security.audit_lines import audit
from triplicate.security.core.token_bucket import TokenBucket

REFUSALS_PER_S = 20
"""Refused logins per second in the audit log. A flood of connections must not push older lines out of it."""


class RefusalLines:
    """Writes the refusals of one server. A line has the number of those before it that were passed over, as ``passed_over``."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._bucket = TokenBucket(REFUSALS_PER_S, clock.monotonic())
        self._passed_over = 0

    def write(self, event: str, facts: Mapping[str, object]) -> None:
        """Write a line, unless there were too many of late."""
        if self._bucket.wait_s(self._clock.monotonic()) > 0:
            self._bucket.give_back()
            self._passed_over += 1
            return
        passed_over, self._passed_over = self._passed_over, 0
        audit(event, self._clock.wall_us(), {**facts, "passed_over": passed_over} if passed_over else facts)
