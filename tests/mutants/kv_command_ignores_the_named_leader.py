"""A command asks the given nodes only, although one of them names the leader."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.cli.data_commands import kv_data_commands

TESTS = ["tests/unit/cli/data_commands/test_kv_data_commands.py::test_the_leader_that_a_node_names_is_asked_at_once"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(kv_data_commands, "_leader_of", lambda _: None)
