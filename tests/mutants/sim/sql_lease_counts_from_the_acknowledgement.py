"""The lease begins when an append is acknowledged, when another node may already lead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

KIND = "databases"
CHECKERS = ("registers_are_linearizable",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.replica.core.read_confirmation import SentAppend
    from triplicate.sql.engine.leadership import Leadership

    original = Leadership._acknowledge

    def acknowledge(self: Leadership, sent: SentAppend[Any]) -> None:
        original(self, replace(sent, sent_at=self._clock.elapsed()))

    patch(Leadership, "_acknowledge", acknowledge)
