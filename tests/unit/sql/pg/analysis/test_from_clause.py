"""FROM: how many columns a statement may name by stars."""

from __future__ import annotations

import pytest

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import statement_of
from triplicate.sql.pg.translate.translation import translate

TABLES = (("t", (("a", "int"), ("b", "text"))),)
WIDE = f"wide as (select {', '.join(f'a as c{number}' for number in range(1000))} from t)"


def refusal(sql: str) -> tuple[str, str]:
    with pytest.raises(SqlError) as refused:
        translate(statement_of(sql), TABLES)
    return refused.value.sqlstate, refused.value.message


def test_stars_within_each_other_are_limited_where_they_double() -> None:
    nested = "t"
    for level in range(25):
        nested = f"(select *, * from {nested} s{level})"
    assert refusal(f"select 1 from {nested} s") == ("54011", "a list of results can have at most 2000 entries")
    common = "".join(f", c{level} as (select x.*, y.* from c{level - 1} x, c{level - 1} y)" for level in range(1, 25))
    assert refusal(f"with c0 as (select a from t){common} select 1 from c24")[0] == "54011"
    assert refusal(f"select {', '.join(['1'] * 3000)}")[0] == "54011"


@pytest.mark.parametrize("operator", ["union all", "except", "intersect"])
def test_a_long_compound_is_refused_and_not_left_to_sqlite(operator: str) -> None:
    translate(statement_of(f" {operator} ".join(["select 7 / 2.0"] * 100)), TABLES)
    assert refusal(f" {operator} ".join(["select 7 / 2.0"] * 101))[0] == "54001"


def test_the_columns_of_all_relations_are_limited() -> None:
    query = f"select 1 from {', '.join(f'wide w{number}' for number in range(40))}"
    translate(statement_of(f"with {WIDE} {query}"), TABLES)
    assert refusal(f"with {WIDE} {' union all '.join([query] * 3)}")[0] == "54001"
