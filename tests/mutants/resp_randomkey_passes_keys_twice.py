"""RANDOMKEY begins at the first key after it has found none behind its random bytes, and passes those again."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/kv/resp/test_node_queries.py::test_a_random_key_is_found_among_expired_ones_in_short_pages_that_pass_each_key_once"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.kv.core.store_interface import KeyRange
    from triplicate.kv.resp import node_queries

    patch(node_queries, "KeyRange", lambda start=b"", end=None: KeyRange(start))
