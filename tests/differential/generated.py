"""Queries drawn at random over typed columns, the same ones for a seed each time. Pure.

Both servers should answer the drawn queries alike. The grammar excludes the differences of docs/sql.md, and
expressions that fail depending on the order of evaluation.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

TABLE = (
    "CREATE TABLE g (id int PRIMARY KEY, i int, j int, b bigint, f float8, t text, u text, p bool, q bool, d date, m timestamp)",
    (
        "INSERT INTO g VALUES"
        " (1, 7, 2, 7000000000, 1.5, 'apple', 'a', true, false, '2020-02-29', '2020-02-29 01:02:03'),"
        " (2, -7, 3, -70, -2.5, 'Banana', 'Ba', false, NULL, '1999-12-31', '1999-12-31 23:59:59.5'),"
        " (3, 0, NULL, 0, 0, '', '%', NULL, true, '2020-03-01', '2020-03-01 00:00:00'),"
        " (4, NULL, 5, NULL, NULL, NULL, NULL, true, true, NULL, NULL),"
        " (5, 12, 12, 12, 12, '12', '12', false, false, '2000-01-01', '2000-01-01 12:00:00'),"
        " (6, 7, -1, 5, 0.25, 'a_b%', '_', true, NULL, '2020-02-29', NULL)"
    ),
)
"""Statements that make the table, with NULLs, equal values, signs, an empty text and texts that look like patterns."""

_INTS = ("0", "1", "2", "(-3)", "7", "12", "NULL::int")
_FLOATS = ("0.5::float8", "(-2)::float8", "12::float8", "NULL::float8")
_TEXTS = ("'a'", "''", "'Ba'", "'12'", "'x%'", "NULL::text")
_PATTERNS = ("'%a%'", "'A%'", "'_'", "'%\\%'", "'a\\_b%'", "''", "'__n%'")
_DATES = ("'2020-02-29'::date", "'2000-01-01'::date", "NULL::date")
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
_TYPES = ("int", "float", "text", "bool", "date", "moment")


class Grammar:
    """Draws expressions of a type, and queries made of them."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def _one(self, choices: Sequence[str]) -> str:
        return self._random.choice(choices)

    def _choose(self, ways: Sequence[Callable[[], str]]) -> str:
        return self._random.choice(ways)()

    def expression(self, kind: str, depth: int) -> str:
        """An expression of a type: ``int``, ``float``, ``text``, ``bool``, ``date`` or ``moment``."""
        if depth <= 0:
            return self._leaf(kind)
        deeper = {"int": self._int, "float": self._float, "text": self._text, "bool": self._bool, "date": self._date}.get(kind)
        return (
            self._leaf(kind)
            if deeper is None
            else self._choose([lambda: self._leaf(kind), lambda: deeper(depth - 1), lambda: deeper(depth - 1)])
        )

    def _leaf(self, kind: str) -> str:
        columns = {"int": ("i", "j", "id"), "float": ("f",), "text": ("t", "u"), "bool": ("p", "q"), "date": ("d",), "moment": ("m",)}[kind]
        constants = {"int": _INTS, "float": _FLOATS, "text": _TEXTS, "bool": ("true", "false", "NULL::bool"), "date": _DATES}.get(
            kind, columns
        )
        return self._one(columns) if self._random.random() < 0.7 else self._one(constants)

    def _conditional(self, kind: str, depth: int) -> Callable[[], str]:
        def draw() -> str:
            one, other = self.expression(kind, depth), self.expression(kind, depth)
            return self._one(
                (
                    f"CASE WHEN {self.expression('bool', depth)} THEN {one} ELSE {other} END",
                    f"coalesce({one}, {other})",
                    f"nullif({one}, {other})",
                )
            )

        return draw

    def _int(self, depth: int) -> str:
        one, other = self.expression("int", depth), self.expression("int", depth)
        text = self.expression("text", depth)
        return self._choose(
            [
                lambda: f"({one} {self._one(('+', '-'))} {other})",
                lambda: f"({self._leaf('int')} * {self._one(_INTS)})",
                lambda: f"({one} {self._one(('/', '%'))} {self._one(('2', '(-3)', '7'))})",
                lambda: f"abs({one})",
                lambda: f"(- {one})",
                lambda: f"length({text})",
                lambda: f"({text} = {self._leaf('text')})::int",
                lambda: f"({self.expression('date', depth)} - {self._one(_DATES)})",
                self._conditional("int", depth),
            ]
        )

    def _float(self, depth: int) -> str:
        one, other = self.expression("float", depth), self.expression("float", depth)
        return self._choose(
            [
                lambda: f"({one} {self._one(('+', '-'))} {other})",
                lambda: f"({one} * {self._one(_FLOATS)})",
                lambda: f"({one} / {self._one(('2', '0.25::float8', '(-3)'))})",
                lambda: f"({one} + {self._leaf('int')})",
                lambda: f"{self._leaf('int')}::float8",
                lambda: f"{self._one(('floor', 'ceil', 'abs'))}({one})",
                self._conditional("float", depth),
            ]
        )

    def _text(self, depth: int) -> str:
        one, other = self.expression("text", depth), self.expression("text", depth)
        return self._choose(
            [
                lambda: f"({one} || {other})",
                lambda: f"{self._one(('lower', 'upper', 'trim', 'ltrim', 'rtrim'))}({one})",
                lambda: f"substr({one}, {self._one(('1', '2', '3'))}, {self._one(('0', '1', '2', '9'))})",
                lambda: f"replace({one}, {self._one(_TEXTS[:1] + _TEXTS[2:5])}, {other})",
                lambda: f"{self.expression('int', depth)}::text",
                lambda: f"({one} || {self._leaf('int')})",
                self._conditional("text", depth),
            ]
        )

    def _date(self, depth: int) -> str:
        return self._choose(
            [
                lambda: f"({self.expression('date', depth)} {self._one(('+', '-'))} {self._one(('0', '1', '31', '366'))})",
                self._conditional("date", depth),
            ]
        )

    def _bool(self, depth: int) -> str:
        kind = self._one(_TYPES)
        one, other, third = (self.expression(kind, depth) for _ in range(3))
        truth, second = self.expression("bool", depth), self.expression("bool", depth)
        pattern = f"{self.expression('text', depth)} {self._one(('LIKE', 'NOT LIKE', 'ILIKE'))} {self._one(_PATTERNS)}"
        return self._choose(
            [
                lambda: f"({one} {self._one(_COMPARISONS)} {other})",
                lambda: f"({one} {self._one(_COMPARISONS)} {other})",
                lambda: f"({truth} {self._one(('AND', 'OR'))} {second})",
                lambda: f"(NOT {truth})",
                lambda: f"({one} IS {self._one(('NULL', 'NOT NULL'))})",
                lambda: f"({truth} IS {self._one(('TRUE', 'NOT TRUE', 'FALSE', 'NOT FALSE'))})",
                lambda: f"({one} {self._one(('IN', 'NOT IN'))} ({other}, {third}))",
                lambda: f"({one} {self._one(('BETWEEN', 'NOT BETWEEN'))} {other} AND {third})",
                lambda: f"({pattern})",
            ]
        )

    def query(self) -> str:
        """A whole query, its rows in a fixed order."""
        shapes = [self._plain, self._filtered, self._grouped, self._windowed, self._distinct, self._joined]
        return self._choose([*shapes, self._plain, self._compound, self._nested, self._common, self._counted])

    def _any(self, depth: int) -> str:
        return self.expression(self._one(_TYPES), depth)

    def _key(self) -> str:
        """An expression to order by; not a constant, which PostgreSQL refuses."""
        kind = self._one(_TYPES)
        return (
            f"coalesce({self._leaf(kind)}, {self._leaf(kind)})"
            if self._random.random() < 0.3
            else self._one(("i", "j", "f", "t", "p", "d", "m"))
        )

    def _order(self) -> str:
        direction = self._one(("", " ASC", " DESC"))
        return direction + self._one(("", "", " NULLS FIRST", " NULLS LAST"))

    def _plain(self) -> str:
        return f"SELECT id, {self._any(3)} AS a, {self._any(2)} AS b FROM g ORDER BY id"

    def _filtered(self) -> str:
        limit = self._one(("", "", " LIMIT 3", " LIMIT 2 OFFSET 1"))
        return f"SELECT id, {self._any(1)} AS a FROM g WHERE {self.expression('bool', 3)} ORDER BY {self._key()}{self._order()}, id{limit}"

    def _grouped(self) -> str:
        key, number = self._any(1), self.expression("int", 1)
        having = self._one(("", "", " HAVING count(*) > 1", f" HAVING min({number}) IS NOT NULL"))
        counted = f"count(*), count({self._any(1)}), sum({number}), min({self.expression('text', 1)}), max({self.expression('float', 1)})"
        return f"SELECT {key} AS k, {counted} FROM g GROUP BY 1{having} ORDER BY 1{self._order()}"

    def _windowed(self) -> str:
        window = f"OVER (PARTITION BY {self._any(1)} ORDER BY {self._key()}{self._order()}, id)"
        call = self._one(
            (
                "row_number()",
                "count(*)",
                f"sum({self.expression('int', 1)})",
                f"lag({self._one(('i', 'f', 't', 'p', 'd', 'm'))})",
                f"max({self.expression('text', 1)})",
            )
        )
        return f"SELECT id, {call} {window} AS w FROM g ORDER BY id"

    def _distinct(self) -> str:
        return f"SELECT DISTINCT {self._any(2)} AS a FROM g ORDER BY 1{self._order()}"

    def _joined(self) -> str:
        left, right = self._one(("x.i", "x.j", "x.id")), self._one(("y.i", "y.j", "y.id"))
        join = self._one(("JOIN", "LEFT JOIN", "FULL JOIN"))
        return f"SELECT x.id AS a, y.id AS b FROM g x {join} g y ON {left} = {right} ORDER BY 1, 2"

    def _compound(self) -> str:
        kind = self._one(_TYPES)
        parts = [f"SELECT {self.expression(kind, 2)} AS a FROM g WHERE {self.expression('bool', 1)}" for _ in range(2)]
        return f"{parts[0]} {self._one(('UNION', 'UNION ALL', 'INTERSECT', 'EXCEPT'))} {parts[1]} ORDER BY 1{self._order()}"

    def _nested(self) -> str:
        kind = self._one(_TYPES)
        inner = f"SELECT {self.expression(kind, 1)} FROM g WHERE {self.expression('bool', 1)}"
        related = self._one(("x.i = g.j", "x.i < g.id", "x.t = g.u", "x.p = g.q"))
        condition = self._choose(
            [
                lambda: f"{self._leaf(kind)} IN ({inner})",
                lambda: f"{self._leaf(kind)} NOT IN ({inner})",
                lambda: f"EXISTS (SELECT 1 FROM g x WHERE {related})",
                lambda: f"NOT EXISTS (SELECT 1 FROM g x WHERE {related})",
                lambda: f"{self._leaf('int')} >= (SELECT {self._one(('min', 'max', 'sum', 'count'))}(x.i) FROM g x WHERE {related})",
            ]
        )
        return f"SELECT id, ({condition}) AS a, (SELECT max(x.t) FROM g x WHERE {related}) AS b FROM g ORDER BY id"

    def _common(self) -> str:
        kind = self._one(_TYPES)
        part = f"SELECT id AS n, {self.expression(kind, 2)} AS v FROM g WHERE {self.expression('bool', 1)}"
        return f"WITH c AS ({part}) SELECT c.n, c.v, x.v AS w, x.v = c.v AS e FROM c LEFT JOIN c x ON x.n = c.n + 1 ORDER BY 1, 2"

    def _counted(self) -> str:
        text, truth = self.expression("text", 1), self.expression("bool", 1)
        counted = f"count(DISTINCT {self._any(1)}), count(*) FILTER (WHERE {truth}), sum(DISTINCT {self._leaf('int')})"
        joined = f"string_agg({text}, ',' ORDER BY id), bool_or({truth})"
        return f"SELECT {self._one(('p', 'q', 'd', 'i'))} AS k, {counted}, {joined} FROM g GROUP BY 1 ORDER BY 1{self._order()}"


def queries(seed: int, count: int) -> list[str]:
    grammar = Grammar(seed)
    return [grammar.query() for _ in range(count)]
