"""A merge omits control records which void earlier records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = ["tests/unit/log/upkeep/test_rewriter.py::test_small_neighbours_become_one_segment_and_nothing_that_is_read_changes"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.payload import decode_header
    from triplicate.log.core.rewrite_plan import is_kept
    from triplicate.log.upkeep import rewriter

    def records_only(payload: bytes, place: int, run: Any) -> bool:
        return is_kept(payload, place, run) and (place == 0 or not decode_header(payload).is_control)

    patch(rewriter, "is_kept", records_only)
