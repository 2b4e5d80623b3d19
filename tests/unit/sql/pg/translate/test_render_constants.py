"""A statement with very many constants is compiled in linear time, and means the same."""

from __future__ import annotations

import pytest

from tests.unit.sql.pg.translation_rig import TranslatedDatabase
from triplicate.sql.pg.translate import render_constants

_N = 5_000
_LISTED = ("Integer", "Int64", "Real", "String8", "Variable")
CHAINS = {
    "or": "select id from t where " + " or ".join(f"a = {i}" for i in range(_N)),
    "or of text": "select id from t where " + " or ".join(f"b = 'x{i}'" for i in range(_N)),
    "or of short lists": "select id from t where " + " or ".join(f"a in ({i}, {-i})" for i in range(_N)),
    "or of dates": "select id from t where " + " or ".join(f"d <> date '2024-01-{1 + i % 28:02}' and a = {i}" for i in range(_N)),
    "and": "select id from t where " + " and ".join(f"a + {i} <> {i}.5" for i in range(_N)),
    "case": "select case " + " ".join(f"when a = {i} then {i}" for i in range(_N)) + " end from t",
    "case of a value": "select case a " + " ".join(f"when {i} then 'x{i}'" for i in range(_N)) + " end from t",
    "in of expressions": "select id from t where a in (" + ", ".join(f"id + {i}" for i in range(_N)) + ")",
    "parameters": "select id from t where " + " or ".join(f"a = ${i + 1}" for i in range(_N)),
    "rows of expressions": "insert into o values " + ", ".join(f"({i} + {i + 1}, 'x')" for i in range(_N)),
}


@pytest.fixture
def database() -> TranslatedDatabase:
    return TranslatedDatabase()


@pytest.mark.parametrize("chain", CHAINS)
def test_few_constants_are_on_the_list_that_sqlite_searches(database: TranslatedDatabase, chain: str) -> None:
    sql = database.translate(CHAINS[chain]).sql
    values = [5] * _N if chain == "parameters" else None
    program = [str(row[1]) for row in database.connection.execute(f"explain {sql}", values)]
    # SQLite puts what is on the list behind the program, where it opens its transaction.
    assert len(program) > _N
    listed = program[program.index("Transaction") :]
    assert sum(name in _LISTED for name in listed) <= 1_010


@pytest.mark.parametrize(
    "sql",
    [
        "select id from t where a = 20 or b = 'ABC%' or id = 3 and n is null order by 1 desc",
        "select a, count(*) from t where a > -5 or a is null group by 1 order by 2, 1",
        "select case when a = 20 then 'x' when b like 'ABC\\%' then 'y' else null end, case id when 3 then 1.50 else -2 end from t",
        "select id from t where (a, b) = (20, 'abc') or id in (select id from o where id = 2 order by 1 limit 1)",
        "select id from t where d = '2024-1-5' or f and u = 'A0EEBC999C0B4EF8BB6D6BB9BD380A11' or y = '\\x01'",
        "select 7 + 5 * -3 || 'x', n * 2 + 0.25, c / 2 from t where id in (1, 2) and a between 1 and 30 and (j ->> 'a')::int = 1",
        "select id from t where a = 1 + (select max(id) from o where s = 'z' or id = 2) or a = (select 20 order by 1)",
    ],
)
def test_the_meaning_stays(database: TranslatedDatabase, monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    expected = database.rows(sql + " ")
    monkeypatch.setattr(render_constants, "LISTED_MAX", 0)
    translated = database.translate(sql).sql
    assert "ifnull(" in translated
    assert database.rows(sql) == expected
