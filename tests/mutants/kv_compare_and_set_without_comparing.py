"""A batch of a store changes keys without a look at its conditions."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.kv.core import decisions

TESTS = [
    "tests/unit/kv/engine/test_replicated_store.py::test_a_batch_whose_condition_fails_changes_nothing",
    "tests/property/test_decisions.py::test_batches_do_what_a_dictionary_does",
    "tests/unit/benchmarks/histories/test_store_clients.py::test_the_history_of_a_server_is_linearizable_and_has_every_kind_of_operation",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(decisions, "_holds", lambda condition, found: True)
