"""A bookie that registers replaces the registration of a bookie at another address."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata import bookie_registry

TESTS = ["tests/unit/metadata/test_layout.py::test_registering_waits_for_the_node_of_a_previous_life_at_another_address"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(bookie_registry, "_has_address", lambda data, info: True)
