"""Requests of a client of Redis that arrive while its change is at the log wait for further ones, and perhaps for ever."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/kv/resp/test_resp_conversation.py::test_requests_that_arrive_while_a_change_is_at_the_log_are_answered_after_it",
]


def apply(patch: Any) -> None:
    from triplicate.kv.resp.resp_conversation import RespConversation

    serve = RespConversation._serve_requests

    async def serve_what_is_there(self: RespConversation) -> None:
        buffer: Any = self._stream.buffer
        fed = buffer.feed
        later: list[bytes] = []
        buffer.feed = later.append
        try:
            await serve(self)
        finally:
            buffer.feed = fed
            for data in later:
                fed(data)

    patch(RespConversation, "_serve_requests", serve_what_is_there)
