"""Exponential backoff with jitter, so that retries of many processes do not coincide."""

from __future__ import annotations

import random

from triplicate.errors import ArgumentError


class Backoff:
    """Doubles from `first_s` to `maximum_s`; each delay is drawn evenly from the upper half of its step.

    Source: AWS Architecture Blog, "Exponential Backoff And Jitter" (equal jitter).
    """

    def __init__(self, first_s: float, maximum_s: float, rng: random.Random) -> None:
        """
        Args:
            rng: a stream of `Entropy`, so that a simulation repeats.

        Raises:
            ArgumentError: not ``0 < first_s <= maximum_s``.
        """
        if not 0 < first_s <= maximum_s:
            raise ArgumentError(f"backoff needs 0 < first_s <= maximum_s, not {first_s} and {maximum_s}")
        self._first_s = first_s
        self._maximum_s = maximum_s
        self._rng = rng
        self._step_s = first_s
        self.attempts = 0
        """Delays drawn since the last reset."""

    def next_s(self) -> float:
        """The delay before the next attempt, in seconds."""
        step_s = self._step_s
        self.attempts += 1
        self._step_s = min(step_s * 2, self._maximum_s)
        return step_s * (0.5 + 0.5 * self._rng.random())

    def reset(self) -> None:
        """Begin again with `first_s`; call it after a success."""
        self._step_s = self._first_s
        self.attempts = 0
