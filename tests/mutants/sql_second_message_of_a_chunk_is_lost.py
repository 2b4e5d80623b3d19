"""Only the first message of a received chunk is served."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol.wire import MessageBuffer

TESTS = ["tests/unit/sql/pg/protocol/test_conversation_chunks.py::test_the_answers_to_a_chunk_are_written_together"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    whole = MessageBuffer.next_message

    def next_message(buffer: MessageBuffer) -> tuple[bytes, bytes] | None:
        message = whole(buffer)
        buffer._at = len(buffer._data)
        return message

    patch(MessageBuffer, "next_message", next_message)
