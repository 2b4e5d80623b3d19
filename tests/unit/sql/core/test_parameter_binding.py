from __future__ import annotations

import math
from typing import Any

import pytest

from triplicate.errors import SqlError
from triplicate.sql.core.parameter_binding import bound, check_text
from triplicate.sql.core.schema_cache import MAX_STATEMENT_BYTES


def test_values_are_bound_by_place_or_by_name() -> None:
    assert bound((None, None), [1, "a"]) == (1, "a")
    assert bound((":a", "@b", "$c"), {"a": 1, "b": None, "c": b"x", "unused": 0}) == (1, None, b"x")
    assert bound((":a", ":b"), (1, 2)) == (1, 2)
    assert bound((), {}) == bound((), ()) == ()


def test_a_text_that_is_too_long_is_refused() -> None:
    check_text("x" * MAX_STATEMENT_BYTES)
    with pytest.raises(SqlError) as refused:
        check_text("x" * (MAX_STATEMENT_BYTES + 1))
    assert refused.value.sqlstate == "54000"


def test_values_become_those_that_sqlite_stores() -> None:
    (number,) = bound((None,), [True])
    assert (number, type(number)) == (1, int)
    assert bound((None,) * 3, (bytearray(b"a"), memoryview(b"b"), -(2**63))) == (b"a", b"b", -(2**63))
    assert bound((None,) * 2, (math.inf, -math.inf)) == (math.inf, -math.inf)


@pytest.mark.parametrize(
    ("names", "parameters", "sqlstate"),
    [
        ((None,), (), "08P01"),
        ((None,), (1, 2), "08P01"),
        ((None,), {"a": 1}, "08P01"),
        (("?1",), {"1": 1}, "08P01"),
        ((":a",), {"b": 1}, "08P01"),
        ((None,), "a", "42804"),
        ((None,), {1, 2}, "42804"),
        ((None,), (object(),), "42804"),
        ((None,), (math.nan,), "0A000"),
        ((None,), (2**63,), "22003"),
        ((None,), (-(2**63) - 1,), "22003"),
    ],
)
def test_what_cannot_be_bound_is_refused(names: tuple[str | None, ...], parameters: Any, sqlstate: str) -> None:
    with pytest.raises(SqlError) as failure:
        bound(names, parameters)
    assert failure.value.sqlstate == sqlstate
