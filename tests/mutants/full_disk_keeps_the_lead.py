"""A leader that cannot write its own copy continues to lead."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.errors import SqlError
from triplicate.sql.executor.writer_connection import WriterConnection

TESTS = [
    "tests/unit/sql/hosting/test_database_node.py::test_a_leader_whose_disk_is_full_leaves_the_lead_to_a_peer",
    "tests/unit/sql/hosting/test_database_node.py::test_an_interactive_transaction_that_meets_a_full_disk_ends_the_lead_too",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    failure = WriterConnection._failure

    def forget(self: WriterConnection, error: Exception, sql: str | None) -> SqlError:
        answer = failure(self, error, sql)
        self._local_fault = None
        return answer

    patch(WriterConnection, "_failure", forget)
