"""A client of Redis is served after its user was removed."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.kv.resp.resp_logins import RespLogins

TESTS = [
    "tests/unit/kv/resp/test_resp_logins.py::test_a_user_that_is_removed_or_has_another_password_is_served_no_more",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(RespLogins, "is_still_user", lambda logins, session: True)
