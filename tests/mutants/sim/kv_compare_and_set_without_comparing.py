"""A batch of a store changes keys without a look at its conditions."""

from __future__ import annotations

from collections.abc import Callable

KIND = "stores"
CHECKERS = ("registers_are_linearizable",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.kv.core import decisions

    patch(decisions, "_holds", lambda condition, found: True)
