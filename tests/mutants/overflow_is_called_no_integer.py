"""INCR beyond 64 bits answers as if the value were no integer, unlike Redis."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/kv/resp/test_resp_conversation.py::test_errors_are_those_of_redis_and_change_nothing"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.kv.resp import store_runner
    from triplicate.kv.resp.core.command_errors import NOT_AN_INTEGER

    patch(store_runner, "OVERFLOW", NOT_AN_INTEGER)
