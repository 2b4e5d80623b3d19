"""A replication lock whose release runs out of attempts is forgotten: as long as the session lives, nobody repairs its ledger."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = [
    "tests/unit/metadata/test_underreplication.py::test_a_lock_whose_end_ran_out_of_attempts_is_deleted_by_the_next_search[release]",
    "tests/unit/metadata/test_underreplication.py::test_a_lock_whose_end_ran_out_of_attempts_is_deleted_by_the_next_search[complete]",
    "tests/unit/metadata/test_underreplication.py::test_a_lock_whose_end_ran_out_of_attempts_is_deleted_by_the_next_search[release unmarked]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from collections.abc import Iterator
    from contextlib import contextmanager

    from triplicate.metadata.underreplication import UnderreplicationManager

    @contextmanager
    def ending(self: Any, ledger_id: int) -> Iterator[None]:
        try:
            yield
        finally:
            self._claimed.discard(ledger_id)

    patch(UnderreplicationManager, "_ending", ending)
