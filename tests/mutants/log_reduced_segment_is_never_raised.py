"""Closed segments with too few copies are never rewritten with all of them."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/upkeep/test_rewriter.py::test_reduced_segments_get_all_their_copies_and_nothing_that_is_read_changes"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.upkeep import rewriter

    patch(rewriter, "reduced_runs", lambda segments: [])
