"""A client that has logged in once keeps its place after RESET, without a limit of time."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/kv/resp/test_resp_logins.py::test_a_reset_gives_the_place_back_and_the_next_login_has_a_limit_of_time"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.kv.resp.resp_connections import RespConnections

    patch(RespConnections, "_dismiss", lambda self, connection: None)
