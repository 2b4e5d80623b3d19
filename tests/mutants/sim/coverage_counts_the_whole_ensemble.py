"""Coverage is counted over the whole ensemble instead of in every write quorum: too few answers suffice for a striped ledger."""

from __future__ import annotations

from collections.abc import Callable, Collection

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.ledger import last_confirmed

    def counted(unknown: Collection[int], ensemble_size: int, write_quorum: int, ack_quorum: int) -> bool:
        return ensemble_size - len(unknown) >= write_quorum - ack_quorum + 1

    patch(last_confirmed, "is_covered", counted)
