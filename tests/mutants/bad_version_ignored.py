"""A change of a metadata node ignores the version it expects, so two writers can both win."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.drivers import memory_tree

TESTS = [
    "tests/unit/metadata/core/test_tree_contract.py::test_a_version_that_does_not_match_changes_nothing[memory]",
    "tests/unit/metadata/core/test_tree_contract.py::test_of_two_sessions_that_set_the_same_version_one_wins[memory]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(memory_tree.MemoryStore, "_checked", lambda store, path, version: store._node(path))
