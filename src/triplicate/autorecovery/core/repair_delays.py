"""How long a worker leaves a ledger alone after a repair that did not end well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

FIRST_S = 5.0
LONGEST_S = 300.0
LEDGERS_MAX = 10_000
"""Ledgers that are remembered. The oldest is forgotten first, and is then repaired at once."""


@dataclass(frozen=True, slots=True)
class RepairDelay:
    """The delay of one ledger.

    Args:
        step_s: the longest delay after the last failure.
        until: when the ledger may be repaired again, in seconds of a monotonic clock.
    """

    step_s: float
    until: float


class RepairDelays:
    """The delays of one process. Each failure doubles that of its ledger, with jitter, up to `LONGEST_S`.

    Args:
        draw: returns a random number from 0 to 1.
    """

    def __init__(self, draw: Callable[[], float], ledgers_max: int = LEDGERS_MAX) -> None:
        self._draw = draw
        self._ledgers_max = ledgers_max
        self._delays: dict[int, RepairDelay] = {}

    def __len__(self) -> int:
        return len(self._delays)

    def is_held(self, ledger_id: int, now: float) -> bool:
        """Whether a ledger is not to be repaired yet."""
        delay = self._delays.get(ledger_id)
        return delay is not None and delay.until > now

    def next_end(self, now: float) -> float | None:
        """When the next ledger may be repaired again; None if none waits."""
        return min((delay.until for delay in self._delays.values() if delay.until > now), default=None)

    def failed(self, ledger_id: int, now: float) -> None:
        """Delay the next repair of a ledger, longer than the last time."""
        before = self._delays.get(ledger_id)
        step_s = FIRST_S if before is None or before.step_s <= 0 else min(LONGEST_S, 2 * before.step_s)
        self._put(ledger_id, RepairDelay(step_s, now + step_s * (0.5 + 0.5 * self._draw())))

    def wait_until(self, ledger_id: int, when: float) -> None:
        """Delay the next repair of a ledger until a known time. It does not count as a failure."""
        self._put(ledger_id, RepairDelay(0.0, when))

    def clear(self, ledger_id: int) -> None:
        """Forget a ledger that was repaired."""
        self._delays.pop(ledger_id, None)

    def _put(self, ledger_id: int, delay: RepairDelay) -> None:
        self._delays.pop(ledger_id, None)
        self._delays[ledger_id] = delay
        if len(self._delays) > self._ledgers_max:
            del self._delays[next(iter(self._delays))]
