"""The leader of a store answers reads although its lease has ended and another node may lead."""

from __future__ import annotations

from collections.abc import Callable

KIND = "stores"
CHECKERS = ("registers_are_linearizable", "expired_keys_stay_expired")


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.kv.engine.store_leadership import StoreLeadership

    patch(StoreLeadership, "is_confirmed", lambda self: self._over is None)
