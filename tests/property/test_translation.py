"""The same statement in every way of a client, and written by hand for SQLite: the answers and the tables are equal.

Statements are drawn at random with casts, and with repeated, reordered and nested parameters. In the text by hand each parameter is its
value and each cast SQLite's, so the expected result does not depend on the translation.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

import apsw
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.sql.pg.server_rig import Served, run

TABLE = "create table t(id integer primary key, a integer, b text)"
ROWS = [(1, 10, "x"), (2, -3, "10"), (3, None, None), (4, 7, "it's"), (5, 0, "")]
Value = int | str | None


@dataclass
class Drawn:
    """A statement: the text for a client, the text by hand, and the parameters' values by number."""

    text: str
    by_hand: str
    values: list[Value] = field(default_factory=list)


class Drawer:
    """Draws expressions, each as a pair: the client's text and the text by hand for SQLite."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.values: list[Value] = []
        self._kinds: list[str] = []

    def finished(self, text: str, by_hand: str) -> Drawn:
        """Parameter numbers are shuffled, so the first one in the text is seldom number 1."""
        used = [index for index in range(len(self.values)) if f"<{index}>" in text]
        self._chance.shuffle(used)
        for number, index in enumerate(used, start=1):
            text = text.replace(f"<{index}>", f"${number}")
        values = [self.values[index] for index in used]
        return Drawn(text, by_hand, values)

    def _parameter(self, kind: str) -> tuple[str, str]:
        known = [index for index, other in enumerate(self._kinds) if other == kind]
        if known and self._chance.random() < 0.5:
            index = self._chance.choice(known)
        else:
            index = len(self.values)
            value: Value = (
                self._chance.choice([1, 2, 3, -3, 7, 10, 0]) if kind == "int" else self._chance.choice(["x", "10", "it's", "é", ""])
            )
            self.values.append(None if self._chance.random() < 0.1 else value)
            self._kinds.append(kind)
        value = self.values[index]
        by_hand = "NULL" if value is None else str(value) if kind == "int" else quoted(str(value))
        names = ["bigint", "int8"] if kind == "int" else ["text", "varchar"]
        name = self._chance.choice(names)
        cast = f"<{index}>::{name}" if self._chance.random() < 0.6 else f"cast(<{index}> as {name})"
        return cast, f"({by_hand})"

    def number(self, depth: int = 0) -> tuple[str, str]:
        choice = self._chance.random()
        if depth > 2 or choice < 0.35:
            return self._parameter("int")
        if choice < 0.5:
            column = self._chance.choice(["a", "id", "t.a"])
            return column, column
        if choice < 0.6:
            (left, left_hand), (right, right_hand) = self.number(depth + 1), self.number(depth + 1)
            operator = self._chance.choice(["+", "-", "*"])
            return f"({left} {operator} {right})", f"({left_hand} {operator} {right_hand})"
        if choice < 0.7:
            (left, left_hand), (right, right_hand) = self.number(depth + 1), self.number(depth + 1)
            return f"coalesce({left}, {right})", f"coalesce({left_hand}, {right_hand})"
        if choice < 0.8:
            (condition, condition_hand), (value, value_hand) = self.condition(depth + 1), self.number(depth + 1)
            return f"case when {condition} then {value} else 5 end", f"case when {condition_hand} then {value_hand} else 5 end"
        if choice < 0.9:
            text, by_hand = self.number(depth + 1)
            # A numeric is rounded away from zero, which SQLite's cast does not do.
            return f"({text} * 0.5)::bigint", f"CAST(round({by_hand} * 0.5) AS INTEGER)"
        text, by_hand = self.number(depth + 1)
        return f"({text}::text)::int8", f"CAST(CAST({by_hand} AS TEXT) AS INTEGER)"

    def string(self, depth: int = 0) -> tuple[str, str]:
        choice = self._chance.random()
        if depth > 2 or choice < 0.5:
            return self._parameter("text")
        if choice < 0.7:
            return "b", "b"
        if choice < 0.85:
            text, by_hand = self.number(depth + 1)
            return f"({text})::text", f"CAST({by_hand} AS TEXT)"
        (left, left_hand), (right, right_hand) = self.string(depth + 1), self.string(depth + 1)
        return f"({left} || {right})", f"({left_hand} || {right_hand})"

    def condition(self, depth: int = 0) -> tuple[str, str]:
        choice = self._chance.random()
        if depth > 2 or choice < 0.4:
            (left, left_hand), (right, right_hand) = self.number(depth + 1), self.number(depth + 1)
            operator = self._chance.choice(["=", "<", ">=", "<>"])
            return f"{left} {operator} {right}", f"{left_hand} {operator} {right_hand}"
        if choice < 0.55:
            (left, left_hand), (right, right_hand) = self.string(depth + 1), self.string(depth + 1)
            return f"{left} = {right}", f"{left_hand} = {right_hand}"
        if choice < 0.7:
            (left, left_hand), (one, one_hand), (two, two_hand) = (self.number(depth + 1) for _ in range(3))
            return f"{left} in ({one}, {two})", f"{left_hand} in ({one_hand}, {two_hand})"
        (left, left_hand), (right, right_hand) = self.condition(depth + 1), self.condition(depth + 1)
        if choice < 0.9:
            operator = self._chance.choice(["and", "or"])
            return f"({left}) {operator} ({right})", f"({left_hand}) {operator} ({right_hand})"
        return f"not ({left})", f"not ({left_hand})"

    def select(self) -> Drawn:
        (one, one_hand), (two, two_hand) = self.number(), self.string()
        where, where_hand = self.condition()
        end = " from t where {} order by id"
        return self.finished(f"select id, {one}, {two}" + end.format(where), f"select id, {one_hand}, {two_hand}" + end.format(where_hand))

    def update(self) -> Drawn:
        (one, one_hand), (two, two_hand) = self.number(), self.string()
        where, where_hand = self.condition()
        text, by_hand = f"update t set b = {two}, a = {one}", f"update t set b = {two_hand}, a = {one_hand}"
        end = " where {} returning id, a"
        return self.finished(text + end.format(where), by_hand + end.format(where_hand))

    def insert(self) -> Drawn:
        (one, one_hand), (two, two_hand) = self.number(2), self._parameter("text")
        one, one_hand = self._parameter("int") if "a" in one_hand or "id" in one_hand else (one, one_hand)
        end = " on conflict (id) do update set a = excluded.a, b = excluded.b returning a, b"
        return self.finished(
            f"insert into t(b, a, id) values ({two}, {one}, 3){end}", f"insert into t(b, a, id) values ({two_hand}, {one_hand}, 3){end}"
        )


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def literal(value: Value) -> str:
    """A value without a type, as a client writes it."""
    return "NULL" if value is None else quoted(str(value))


def inlined(drawn: Drawn) -> str:
    text = drawn.text
    for number in range(len(drawn.values), 0, -1):
        text = text.replace(f"${number}", literal(drawn.values[number - 1]))
    return text


async def simple(connection: psycopg.AsyncConnection[Any], drawn: Drawn) -> list[Any]:
    cursor = psycopg.AsyncClientCursor(connection)
    await cursor.execute(inlined(drawn).encode())
    return await cursor.fetchall()


async def extended(connection: psycopg.AsyncConnection[Any], drawn: Drawn, *, binary: bool, named: bool, typed: bool) -> list[Any]:
    cursor = psycopg.AsyncRawCursor(connection)
    values = drawn.values if typed else [None if value is None else str(value) for value in drawn.values]
    await cursor.execute(drawn.text.encode(), values, prepare=named, binary=binary)
    return await cursor.fetchall()


def by_hand(drawn: Drawn) -> tuple[list[Any], list[Any]]:
    """The rows and the resulting table in SQLite."""
    connection = apsw.Connection(":memory:")
    connection.execute(TABLE)
    connection.executemany("insert into t values (?, ?, ?)", ROWS)
    rows = connection.execute(drawn.by_hand).fetchall()
    return sorted(map(repr, rows)), connection.execute("select * from t order by id").fetchall()


async def every_way(served: Served, drawn: Drawn) -> None:
    rows, table = by_hand(drawn)
    connection = await served.psycopg(autocommit=True)
    ways: list[tuple[str, Any]] = [("simple", lambda: simple(connection, drawn))]
    for binary in (False, True):
        for named in (False, True):
            for typed in (False, True):
                name = f"binary={binary} named={named} typed={typed}"
                ways.append((name, lambda b=binary, n=named, t=typed: extended(connection, drawn, binary=b, named=n, typed=t)))
    async with connection:
        for name, way in ways:
            await connection.execute("delete from t")
            await connection.cursor().executemany("insert into t values (%s, %s, %s)", ROWS)
            found = await way()
            assert sorted(map(repr, found)) == rows, f"{name}: {drawn}"
            after = await (await connection.execute("select * from t order by id")).fetchall()
            assert after == table, f"{name}: {drawn}"


@pytest.mark.parametrize("kind", ["select", "update", "insert"])
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_statement_answers_as_its_hand_written_form(kind: str, seed: int) -> None:
    async def body(served: Served) -> None:
        connection = await served.psycopg(autocommit=True)
        async with connection:
            await connection.execute(TABLE)
        for step in range(4):
            drawer = Drawer(random.Random(f"{kind} {seed} {step}"))
            await every_way(served, getattr(drawer, kind)())

    run(body)


def test_parameters_out_of_order_update_the_right_row() -> None:
    """It updated row 2 with the value meant for row 1: parameters went by their order of appearance."""

    async def body(served: Served) -> None:
        connection = await served.psycopg(autocommit=True)
        async with connection:
            await connection.execute(TABLE)
        await every_way(
            served,
            Drawn("update t set a = $2::int where id = $1::int returning id, a", "update t set a = 2 where id = 1 returning id, a", [1, 2]),
        )
        connection = await served.asyncpg()
        assert tuple(await connection.fetchrow("select $2::text b, $1::text a", "1", "2")) == ("2", "1")
        assert tuple(await connection.fetchrow("select $1::int, $1::text", 5)) == (5, "5")
        await connection.close()

    run(body)


def test_drawn_statements_repeat_and_shuffle_parameters() -> None:
    texts = [Drawer(random.Random(seed)).select().text for seed in range(50)]
    assert any(text.count("$1::") + text.count("cast($1 ") > 1 for text in texts)
    assert any("$2" in text and text.find("$2") < text.find("$1") for text in texts)
    assert asyncio.iscoroutinefunction(simple)
