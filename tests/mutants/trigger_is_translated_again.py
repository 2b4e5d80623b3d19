"""A trigger that is stored in SQLite's words already is translated again, for instance when a dump is loaded."""

from __future__ import annotations

import re
from collections.abc import Callable

from triplicate.sql.pg.rewrite import create_trigger

TESTS = ["tests/unit/sql/pg/rewrite/test_create_trigger.py::test_the_stored_text_makes_the_same_trigger_again"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(create_trigger, "_MARKED", re.compile(r"(?!)"))
