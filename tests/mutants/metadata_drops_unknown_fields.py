"""Ledger metadata written back has lost the fields of a later release."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.ledger import metadata_format

TESTS = [
    "tests/golden/test_protocol_vectors.py::test_fields_of_a_later_release_are_written_back",
    "tests/unit/ledger/test_ledger_metadata.py::test_unknown_fields_survive_a_change_of_ensemble",
    "tests/unit/ledger/test_ledger_metadata.py::test_unknown_fields_of_a_segment_survive_a_change_of_its_ensemble",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def nothing(message: object) -> bytes:
        return b""

    patch(metadata_format, "_unknown_bytes", nothing)
