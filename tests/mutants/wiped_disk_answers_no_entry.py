"""A bookie whose disks were replaced answers "no such entry" for a ledger that it held before."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.bookie.limbo import Limbo

TESTS = [
    "tests/unit/bookie/offline/test_replacement.py::test_a_replaced_bookie_answers_unknown_for_what_it_held_never_a_no",
    "tests/unit/bookie/offline/test_replacement.py::test_a_fence_that_was_lost_lets_no_old_writer_through",
    "tests/unit/client/test_ledger_recovery_replaced_bookie.py::test_a_recovery_waits_for_other_replicas_instead_of_believing_a_replaced_bookie",
]


async def is_in_limbo(self: Limbo, ledger_id: int) -> bool:
    return False


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(Limbo, "is_in_limbo", is_in_limbo)
