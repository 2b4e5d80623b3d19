"""Followers apply entries that are sent but not confirmed."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client import LedgerReader

    learn = LedgerReader.learn

    def learn_one_more(self: LedgerReader, last_add_confirmed: int) -> None:
        learn(self, last_add_confirmed + 1)

    patch(LedgerReader, "learn", learn_one_more)
