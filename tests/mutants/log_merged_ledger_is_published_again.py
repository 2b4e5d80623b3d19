"""Merging forgets at which offset published ledgers were listed, so a repeated publish adds their records again."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/upkeep/test_rewriter.py::test_announced_ledgers_that_were_merged_are_not_published_again"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.head import Head
    from triplicate.log.core.rewrite_plan import Run
    from triplicate.log.upkeep.rewriter import Rewriter

    async def leave(self: Rewriter, run: Run, head: Head) -> None:
        return

    patch(Rewriter, "_mark_listed", leave)
