"""The leader of a store answers reads although its lease has ended and another node may lead."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica import LeaderReads

TESTS = ["tests/unit/kv/engine/test_replicated_store.py::test_a_deposed_leader_answers_nothing_after_its_lease"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(LeaderReads, "is_confirmed", lambda self: not self._is_over)
