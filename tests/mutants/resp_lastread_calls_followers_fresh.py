"""The age of what a client of Redis has read is 0 also where a copy that follows has answered."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/kv/resp/test_resp_server.py::test_clients_learn_where_their_last_answer_was_read_and_how_old_it_was",
    "tests/unit/kv/engine/test_replicated_store.py::test_answers_say_how_old_they_are",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.kv.engine.replicated_store import ReplicatedStore

    patch(ReplicatedStore, "_age_since", lambda self, current_us: 0.0)
