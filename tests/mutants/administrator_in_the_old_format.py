"""A database with an administrator has the format of earlier releases, which serve it to everybody."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/sql/hosting/test_database_directory.py::test_an_entry_with_an_administrator_has_a_format_that_earlier_releases_refuse",
]


def apply(patch: Any) -> None:
    from triplicate.sql.hosting import database_directory

    patch(database_directory, "FORMAT_OF_SECURED", 2)
