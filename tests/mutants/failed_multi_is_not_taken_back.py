"""A multi-operation that fails leaves its earlier operations applied."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.drivers import memory_tree

TESTS = ["tests/unit/metadata/core/test_tree_contract.py::test_multi_applies_nothing_when_one_operation_fails[memory]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(memory_tree._Change, "roll_back", lambda change: None)
