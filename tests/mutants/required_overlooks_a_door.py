"""A node whose clients may connect in clear counts as secure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

TESTS = [
    "tests/unit/security/core/test_requirements.py::test_each_setting_that_opens_a_door_is_named_in_the_processes_that_have_it",
    "tests/unit/security/core/test_requirements.py::test_a_process_with_defaults_gets_one_error_with_everything",
]


def apply(patch: Any) -> None:
    from triplicate.config import NodeSettings
    from triplicate.security.core import requirements

    gaps = requirements.node_gaps

    def careless(node: NodeSettings) -> Iterator[str]:
        return (gap for gap in gaps(node) if not gap.startswith("node.tls"))

    patch(requirements, "node_gaps", careless)
