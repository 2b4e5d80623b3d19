"""A file without bytes is imported as an empty database."""

from __future__ import annotations

import re
from collections.abc import Callable

from triplicate.cli.data_commands import sql_text_import

TESTS = ["tests/unit/cli/data_commands/test_sql_text_import.py::test_a_file_without_a_statement_is_refused"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(sql_text_import, "_NO_STATEMENT", re.compile(b"never"))
