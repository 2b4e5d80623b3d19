"""Coverage allows as many unanswered bookies in a write quorum as the ack quorum."""

from __future__ import annotations

from collections.abc import Callable, Collection

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.ledger import is_covered, last_confirmed

    def one_more(unknown: Collection[int], ensemble_size: int, write_quorum: int, ack_quorum: int) -> bool:
        return is_covered(unknown, ensemble_size, write_quorum, ack_quorum + 1)

    patch(last_confirmed, "is_covered", one_more)
