"""A worker copies all entries of a fragment but the last, and does not miss it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

KIND = "repairs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery import ledger_copier
    from triplicate.autorecovery.core.fragments import LedgerFragment, missing_runs
    from triplicate.ledger import Availability

    def up_to_the_last(fragment: LedgerFragment, stored: Availability) -> Iterator[range]:
        for run in missing_runs(fragment, stored):
            shorter = range(run.start, min(run.stop, fragment.last_entry_id))
            if shorter:
                yield shorter

    patch(ledger_copier, "missing_runs", up_to_the_last)
