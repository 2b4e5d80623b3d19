"""Each task of a read of a table reads it as it is when the task begins."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from triplicate.spark.cluster import database_tables, table_content

TESTS = [
    "tests/unit/spark/tables/test_table_reading.py::test_a_read_is_of_one_position_while_the_table_changes",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    travel = table_content.past_connection

    def at_present(metadata_uri: str, database: str, point: str, node: str = "") -> AbstractContextManager[tuple[str, Any]]:
        present = f"position {database_tables.acknowledged_position(metadata_uri, database)} or later"
        return travel(metadata_uri, database, present if node else point, node)

    patch(table_content, "past_connection", at_present)
