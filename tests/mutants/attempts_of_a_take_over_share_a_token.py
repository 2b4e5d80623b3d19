"""All attempts of a take-over write one token, so a refused attempt takes an earlier one for itself: its writer writes an unlisted ledger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from triplicate.log.core import head_changes
from triplicate.log.core.head_changes import Change

TESTS = ["tests/unit/log/test_logs_take_over.py::test_a_take_over_that_was_applied_unseen_is_not_taken_for_the_next_attempt[refused]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    take_over = head_changes.take_over

    def with_the_owners_token(*arguments: Any) -> Change:
        change = take_over(*arguments)
        assert change.head.owner is not None, "a take-over names its owner"
        return replace(change, head=replace(change.head, token=change.head.owner.token))

    patch(head_changes, "take_over", with_the_owners_token)
