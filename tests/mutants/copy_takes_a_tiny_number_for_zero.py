"""COPY stores a number that is nearer to zero than the smallest float as 0."""

from __future__ import annotations

import re
from collections.abc import Callable

from triplicate.sql.pg.values import types

TESTS = ["tests/unit/sql/pg/values/test_copy_values.py::test_a_field_that_is_not_of_its_type_names_its_place"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(types, "SIGNIFICANT", re.compile("nothing"))
