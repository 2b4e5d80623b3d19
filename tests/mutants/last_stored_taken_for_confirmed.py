"""A reader treats the last stored entry of a bookie as confirmed, and shows entries that may vanish."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/simulation/test_losses.py::test_a_lost_tail_was_never_shown_to_a_reader"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.read.ledger_reader import LedgerReader

    learn = LedgerReader.learn

    def learn_one_more(self: LedgerReader, last_add_confirmed: int) -> None:
        learn(self, last_add_confirmed + 1)

    patch(LedgerReader, "learn", learn_one_more)
