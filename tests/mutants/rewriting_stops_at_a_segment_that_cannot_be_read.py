"""A segment that cannot be rewritten blocks the rewriting of all segments behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.log import Logs, RewriteResult

TESTS = [
    "tests/unit/log/upkeep/test_rewriter.py::test_a_segment_that_cannot_be_read_does_not_keep_the_others_from_getting_their_copies",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def rewrite(self: Logs, name: str, runs: Any, rewriter: Any, limit: int | None = None) -> RewriteResult:
        done = RewriteResult()
        for run in runs[:limit]:
            done += await rewriter.rewrite(run)
        return done

    patch(Logs, "_rewrite", rewrite)
