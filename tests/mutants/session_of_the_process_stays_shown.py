"""An embedded session is still shown when it is closed, or was ended by its node."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.core.client_record import ClientRecord
from triplicate.sql.core.database_activity import DatabaseActivity

TESTS = [
    "tests/unit/sql/engine/test_in_process_session.py::test_sessions_are_shown_with_their_statements_and_transactions",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def forget_client(activity: DatabaseActivity, record: ClientRecord) -> None:
        """It stays."""

    patch(DatabaseActivity, "forget_client", forget_client)
