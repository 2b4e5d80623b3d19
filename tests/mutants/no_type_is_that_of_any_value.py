"""A column whose type no rule determines is described as integers."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

from triplicate.sql.pg.protocol import plans
from triplicate.sql.pg.values import types

TESTS = ["tests/unit/sql/pg/protocol/test_conversation.py::test_no_row_decides_the_type_of_a_column"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(plans, "types", SimpleNamespace(**{**vars(types), "TEXT": types.INT8}))
