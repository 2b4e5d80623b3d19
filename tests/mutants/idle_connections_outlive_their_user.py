"""A client of Redis whose user was removed keeps its connection until it sends something."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/kv/resp/test_resp_logins.py::test_an_idle_connection_of_a_user_that_is_removed_or_has_another_password_ends[no entry]",
]


def apply(patch: Any) -> None:
    from triplicate.kv.resp.resp_conversation import RespConversation

    patch(RespConversation, "end_of_user", lambda self: None)
