"""Ledger id 2147483647 is kept at the short path, one id too far."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.core import paths

TESTS = ["tests/golden/test_protocol_vectors.py::test_a_ledger_is_where_bookkeeper_looks_for_it"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(paths, "SHORT_IDS_END", 2147483648)
