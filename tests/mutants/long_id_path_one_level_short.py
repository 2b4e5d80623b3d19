"""The path of a long ledger id misses its last directory, so Apache's bookies would delete the ledger as unknown."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.core import paths

TESTS = [
    "tests/golden/test_protocol_vectors.py::test_a_ledger_is_where_bookkeeper_looks_for_it",
    "tests/property/test_paths.py::test_a_walk_finds_every_ledger_once_in_ascending_order",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def one_level_short(ledger_id: int) -> str:
        digits = f"{ledger_id:019d}"
        return f"/{digits[:3]}/{digits[3:7]}/{digits[7:11]}/L{digits[11:]}"

    patch(paths, "long_path", one_level_short)
