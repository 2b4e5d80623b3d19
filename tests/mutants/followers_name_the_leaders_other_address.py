"""A node that follows sends clients of Redis to the leader's address for clients of PostgreSQL."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/kv/resp/test_resp_server.py::test_clients_go_on_with_another_leader_and_followers_serve_weaker_levels",
]


def apply(patch: Any) -> None:
    from triplicate.kv import ReplicatedStore

    patch(ReplicatedStore, "leader_resp_address", ReplicatedStore.leader_hint)
