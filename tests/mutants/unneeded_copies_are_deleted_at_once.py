"""A copy that no ledger seems to need is deleted by the first round that finds it, although it may have been written just now."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/autorecovery/test_unneeded_copies.py::test_copies_of_a_bookie_that_came_back_are_deleted_in_the_second_round",
    "tests/unit/autorecovery/test_unneeded_copies.py::test_copies_to_which_entries_were_added_between_two_rounds_stay_for_another_one",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery.unneeded_copies import UnneededCopies, UnneededReport

    run_round = UnneededCopies.run_round

    async def hasty(self: UnneededCopies) -> UnneededReport:
        for ledger_id in await self._local.ledger_ids():
            extent = await self._local.extent(ledger_id)
            if extent is not None:
                self._seen[ledger_id] = extent
        return await run_round(self)

    patch(UnneededCopies, "run_round", hasty)
