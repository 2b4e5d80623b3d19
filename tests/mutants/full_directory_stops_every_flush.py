"""A flush waits for space in a full ledger directory although another directory has room."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/storage/test_ledger_dirs.py::test_a_directory_without_space_is_passed_over_while_another_has_some"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.ledger_dirs import LedgerDirs

    patch(LedgerDirs, "pass_over", lambda self, directory: False)
