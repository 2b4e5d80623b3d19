"""Every statement counts as short, so a long one runs on the event loop, where everything else waits for it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.core.interface import Prepared
from triplicate.sql.executor.short_statements import ShortStatements

TESTS = ["tests/unit/sql/engine/test_writer_thread.py::test_other_statements_run_on_the_thread"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def short(self: ShortStatements, prepared: Prepared, parameters: object, schema_version: int) -> bool:
        return True

    patch(ShortStatements, "includes", short)
