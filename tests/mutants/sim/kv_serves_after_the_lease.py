"""The leader of a store answers reads although its lease has ended and another node may lead."""

from __future__ import annotations

from collections.abc import Callable

KIND = "stores"
CHECKERS = ("registers_are_linearizable", "expired_keys_stay_expired")


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.replica import LeaderReads

    patch(LeaderReads, "is_confirmed", lambda self: not self._is_over)
