"""TRIPLICATE.CAS sets a key that exists, with any value."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.kv.core.operations import KeyExists
from triplicate.kv.resp.core import key_commands

TESTS = [
    "tests/unit/kv/resp/test_resp_conversation.py::test_compare_and_set_changes_a_key_only_if_it_has_the_value",
    "tests/unit/benchmarks/histories/test_store_clients.py::test_the_history_of_a_server_is_linearizable_and_has_every_kind_of_operation",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(key_commands, "ValueIs", lambda key, value: KeyExists(key))
