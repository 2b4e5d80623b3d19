"""A change whose outcome is unknown is answered as one that failed."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.kv.resp import store_runner
from triplicate.kv.resp.core.replies import ErrorReply

TESTS = [
    "tests/unit/kv/resp/test_resp_conversation.py::test_an_unknown_outcome_is_answered_as_unknown",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(store_runner, "refusal_of", lambda error, store: ErrorReply("ERR the change failed"))
