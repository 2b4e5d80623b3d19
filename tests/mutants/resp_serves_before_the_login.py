"""Commands of a client of Redis are served before it has logged in."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.kv.resp.resp_logins import RespLogins

TESTS = [
    "tests/unit/kv/resp/test_resp_logins.py::test_nothing_is_served_before_the_login",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(RespLogins, "demands_login", property(lambda logins: False))
