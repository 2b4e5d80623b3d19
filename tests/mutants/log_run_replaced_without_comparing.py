"""A rewritten segment replaces a run of segments without checking that the run is unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = ["tests/unit/log/upkeep/test_rewriter.py::test_a_list_that_changed_after_the_copying_keeps_its_segments"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from dataclasses import replace

    from triplicate.log.core import head_changes
    from triplicate.log.upkeep.rewriter import Rewriter

    async def list_it(self: Rewriter, run: Any, segment: Any, log_id: str) -> None:
        ids = {old.ledger_id for old in run}

        async def decide(stored: Any) -> Any:
            pages = await self._store.pages(self._name, stored.head)
            last = run[-1].ledger_id
            change = head_changes.rewrite(
                replace(stored.head, token=self._store.token()),
                pages,
                lambda old: segment if old.ledger_id == last else None if old.ledger_id in ids else old,
                lambda reference: True,
            )
            return change, ()

        await self._store.change(self._name, decide, log_id=log_id)

    patch(Rewriter, "_list", list_it)
