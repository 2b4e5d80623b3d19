"""A take-over of unknown outcome is taken for applied where an earlier attempt of its owner was: its writer writes an unlisted ledger."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log.core.head import Head
from triplicate.log.writing import segment_transitions

TESTS = ["tests/unit/log/test_logs_take_over.py::test_a_take_over_that_was_applied_unseen_is_not_taken_for_the_next_attempt[lost]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def has_the_owner(current: Head, changed: Head) -> bool:
        return current.owner == changed.owner

    patch(segment_transitions, "_lists", has_the_owner)
