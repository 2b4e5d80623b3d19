"""Object ids number the names in order, so a new table changes the oid of every table behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.sql.catalogue import object_ids as module

TESTS = ["tests/unit/sql/test_catalogue.py::test_object_ids_come_from_names_alone"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def object_ids(names: Sequence[str]) -> dict[str, int]:
        return {name: 16384 + number for number, name in enumerate(sorted(names))}

    patch(module, "object_ids", object_ids)
