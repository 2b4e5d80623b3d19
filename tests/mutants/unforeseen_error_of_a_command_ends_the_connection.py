"""The RESP door answers the errors of Triplicate only; any other error ends the client's connection."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.errors import TriplicateError
from triplicate.kv.core.store_interface import KeyValueStore
from triplicate.kv.resp import resp_conversation, store_runner
from triplicate.kv.resp.core.command_errors import CommandError
from triplicate.kv.resp.core.replies import ErrorReply
from triplicate.kv.resp.store_session import refusal_of

TESTS = ["tests/unit/kv/resp/test_resp_conversation.py::test_whatever_a_command_meets_fails_the_command_only"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def expected_only(error: Exception, store: KeyValueStore | None) -> ErrorReply:
        if not isinstance(error, TriplicateError | CommandError):
            raise ProtocolFault from error
        return refusal_of(error, store)

    patch(store_runner, "refusal_of", expected_only)
    patch(resp_conversation, "refusal_of", expected_only)


class ProtocolFault(OSError):
    """Ends the connection."""
