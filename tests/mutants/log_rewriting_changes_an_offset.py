"""Entries of merged segments keep their index of the old segment, which shifts their offsets."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/upkeep/test_rewriter.py::test_small_neighbours_become_one_segment_and_nothing_that_is_read_changes"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.upkeep import rewriter
    from triplicate.log.upkeep.rewriter import Rewriter

    async def believe(self: Rewriter, segment: object, source: object) -> None:
        """Read nothing."""

    patch(rewriter, "with_first_index", lambda payload, first_index: payload)
    patch(Rewriter, "verify", believe)
