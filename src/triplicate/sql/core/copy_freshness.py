"""How recent a copy is, by one machine's clock alone. Pure.

A question for the end of the log, asked at a time t, has an answer that no record acknowledged before t lies beyond. When the copy has
reached that end, it has everything that was acknowledged before t: it is at most as old as t. The other machines' clocks do not matter.
Times are seconds of this node's clock, which counts suspended time.
"""

from __future__ import annotations

from collections import deque
from typing import Final

OPEN_MAX: Final = 64
"""Answers that the copy has not reached yet. Beyond them further ones are ignored: the oldest will be reached first."""


class CopyFreshness:
    """The state that a copy is known to have reached."""

    def __init__(self) -> None:
        self.current_at = float("-inf")
        """The copy has everything that was acknowledged before this time."""
        self._position = 0
        self._open: deque[tuple[int, float]] = deque()
        """Ends that the copy has not reached, with the times of their questions, in the order of the questions."""

    @property
    def lacks(self) -> int:
        """Records known to be in the log and not in the copy."""
        return max(0, max((end for end, _ in self._open), default=0) - self._position)

    def age_s(self, now: float) -> float | None:
        """The copy has everything that was acknowledged longer ago than this; None if nothing is known."""
        return max(0.0, now - self.current_at) if self.current_at > float("-inf") else None

    def answered(self, end: int, asked_at: float) -> bool:
        """The end of the log is known, as of the time of the question. Returns whether `current_at` has changed."""
        if self._position >= end:
            return self._is_current(asked_at)
        if len(self._open) < OPEN_MAX:
            self._open.append((end, asked_at))
        return False

    def moved(self, position: int) -> bool:
        """The copy has moved. Returns whether `current_at` has changed.

        A copy that moves back was replaced by an older one: nothing is known of it.
        """
        if position < self._position:
            self.current_at = float("-inf")
        self._position = position
        if not self._open:
            return False
        # An end that no record ever reached may be in the way: its entry was given up by a recovery.
        reached = max((asked_at for end, asked_at in self._open if end <= position), default=None)
        return reached is not None and self._is_current(reached)

    def _is_current(self, asked_at: float) -> bool:
        if asked_at <= self.current_at:
            return False
        self.current_at = asked_at
        while self._open and self._open[0][1] <= asked_at:
            self._open.popleft()
        return True
