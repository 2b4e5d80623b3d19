"""A writer replaces its bookies although an operator has frozen ensembles."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata import EnsembleFreezes

TESTS = ["tests/unit/client/write/test_ensemble_changer_frozen.py::test_a_bookie_is_replaced_only_after_the_freeze"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def read(freezes: EnsembleFreezes) -> None:
        return None

    patch(EnsembleFreezes, "read", read)
