"""The verdict of a soak run accepts two copies of an entry on one host."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.soak import verdicts

TESTS = [
    "tests/unit/benchmarks/soak/test_verdicts.py::test_a_ledger_without_a_copy_is_reported",
    "tests/unit/benchmarks/soak/test_verdicts.py::test_copies_of_an_entry_on_one_host",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(verdicts, "together", lambda ensemble, write_quorum, hosts: "")
