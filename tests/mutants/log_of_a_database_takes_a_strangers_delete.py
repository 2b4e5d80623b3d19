"""Any program may delete the log of a database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.log import Logs

TESTS = ["tests/unit/log/core/test_purposes.py::test_a_log_of_a_database_is_changed_only_for_the_database[delete]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    guarded = Logs.delete

    async def open_to_all(self: Logs, name: str, *args: Any, **options: Any) -> Any:
        return await guarded(self.acting_for((await self.head(name)).purpose), name, *args, **options)

    patch(Logs, "delete", open_to_all)
