"""A copy of a store answers a session that has seen more than the copy."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.kv import ReplicatedStore

TESTS = ["tests/unit/kv/hosting/test_hosted_stores.py::test_followers_have_the_leaders_content_and_one_of_them_replaces_it"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(ReplicatedStore, "_reaches", lambda self, level: True)
