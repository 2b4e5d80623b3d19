"""After an error in an extended query, the messages up to Sync are served and answered."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol.protocol_state import ProtocolState

TESTS = [
    "tests/unit/sql/pg/protocol/test_protocol_state.py::test_after_an_error_only_sync_and_terminate_are_not_skipped",
    "tests/unit/sql/pg/protocol/test_server.py::test_an_error_in_a_pipeline_skips_to_sync_and_undoes_the_implicit_transaction",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(ProtocolState, "fail_message", lambda state: None)
