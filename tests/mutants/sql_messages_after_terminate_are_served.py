"""Messages behind Terminate in the same chunk are served and answered."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol.protocol_state import ProtocolState, Reception

TESTS = ["tests/unit/sql/pg/protocol/test_conversation_chunks.py::test_nothing_is_served_after_terminate"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    receive = ProtocolState.receive

    def receive_all(state: ProtocolState[object, object], letter: bytes) -> Reception:
        reception = receive(state, letter)
        return Reception.SKIPPED if reception is Reception.LAST else reception

    patch(ProtocolState, "receive", receive_all)
