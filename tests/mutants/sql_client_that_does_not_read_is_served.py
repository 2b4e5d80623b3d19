"""A client that sends statements without reading is served, so that its answers fill the memory."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol.message_stream import MessageStream

TESTS = [
    "tests/unit/sql/pg/protocol/test_conversation_chunks.py::test_a_client_that_does_not_read_is_not_served_and_its_answers_are_bounded"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(MessageStream, "must_wait", property(lambda stream: False))
