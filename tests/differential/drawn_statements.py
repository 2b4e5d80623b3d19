"""Whole statements drawn at random over three small tables with NULLs and equal rows, the same ones for a seed each time. Pure.

Queries with every kind of join, subqueries, unions, groups and windows, and changes with subqueries. Rows have a fixed order wherever a
statement limits them. The grammar excludes the differences of docs/sql.md; it may contain refused statements.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

TABLES = (
    "CREATE TABLE a (id int PRIMARY KEY, x int, y int, t text)",
    "CREATE TABLE b (id int PRIMARY KEY, x int, z int, t text)",
    "CREATE TABLE c (x int, w int, p bool)",
    "CREATE TABLE k (id int PRIMARY KEY, u int UNIQUE, v int DEFAULT 5, n text NOT NULL DEFAULT 'd')",
)
ROWS = (
    "INSERT INTO a VALUES (1,1,10,'a'),(2,1,20,'b'),(3,NULL,30,'a'),(4,2,NULL,NULL),(5,2,20,'c'),(6,NULL,NULL,'b')",
    "INSERT INTO b VALUES (1,1,100,'a'),(2,1,200,'x'),(3,2,NULL,'b'),(4,NULL,400,NULL),(7,3,700,'a')",
    "INSERT INTO c VALUES (1,5,true),(1,5,false),(2,6,NULL),(NULL,7,true),(NULL,NULL,NULL),(1,5,true)",
    "INSERT INTO k VALUES (1,10,1,'a'),(2,20,2,'b'),(3,NULL,NULL,'c'),(4,40,2,'a')",
)
COLUMNS = {"a": ("id", "x", "y", "t"), "b": ("id", "x", "z", "t"), "c": ("x", "w", "p"), "k": ("id", "u", "v", "n")}
_TEXTS, _BOOLS = ("t", "n"), ("p",)


@dataclass(frozen=True)
class Relation:
    """A relation of a drawn FROM: its name and its columns."""

    name: str
    columns: tuple[str, ...]

    def of(self, kind: str) -> list[str]:
        return [f"{self.name}.{column}" for column in self.columns if kind_of(column) == kind]


def kind_of(column: str) -> str:
    return "text" if column in _TEXTS else "bool" if column in _BOOLS else "int"


class StatementGrammar:
    """Draws statements."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._names = 0

    def _one(self, choices: Sequence[str]) -> str:
        return self._random.choice(choices)

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _alias(self) -> str:
        self._names += 1
        return f"r{self._names}"

    # FROM.

    def _relation(self, depth: int) -> tuple[str, Relation]:
        table = self._one(("a", "b", "c", "k"))
        alias = self._alias()
        if depth <= 0 or self._chance(0.75):
            return f"{table} {self._one(('', 'AS '))}{alias}", Relation(alias, COLUMNS[table])
        kept = self._random.sample(COLUMNS[table], 2)
        items = ", ".join(kept)
        if self._chance(0.3):
            return f"(VALUES (1, 10), (2, NULL), (NULL, 5)) {alias}(x, y)", Relation(alias, ("x", "y"))
        where = f" WHERE {self._condition([Relation(table, COLUMNS[table])], 0)}" if self._chance(0.5) else ""
        distinct = self._one(("", "DISTINCT "))
        return f"(SELECT {distinct}{items} FROM {table}{where}) {alias}", Relation(alias, tuple(kept))

    def source(self, depth: int) -> tuple[str, list[Relation]]:
        """A FROM of one to three relations."""
        text, first = self._relation(depth)
        relations, group = [first], [first]
        for _ in range(self._random.choice((0, 1, 1, 2))):
            other, relation = self._relation(depth)
            way = self._one((",", "CROSS", "ON", "ON", "ON", "USING", "USING", "NATURAL"))
            kind = self._one(("", "INNER ", "LEFT ", "LEFT OUTER ", "RIGHT ", "FULL "))
            shared = [column for column in relation.columns if sum(column in one.columns for one in group) == 1]
            if way == ",":
                text, group = f"{text}, {other}", []
            elif way == "USING" and shared and len(group) == 1:
                names = ", ".join(self._random.sample(shared, self._random.randint(1, len(shared))))
                text = f"{text} {kind}JOIN {other} USING ({names})"
            elif way == "NATURAL" and len(group) == 1:
                text = f"{text} NATURAL {kind}JOIN {other}"
            elif way == "CROSS":
                text = f"{text} CROSS JOIN {other}"
            else:
                # PostgreSQL supports FULL JOIN only for conditions that it can merge or hash.
                left, right = self._int_of(group), self._int_of([relation])
                more = f" AND {self._condition([*group, relation], 0)}" if "FULL" not in kind and self._chance(0.4) else ""
                text = f"{text} {kind}JOIN {other} ON {left} = {right}{more}"
            relations.append(relation)
            group.append(relation)
        return text, relations

    # Expressions.

    def _int_of(self, relations: Sequence[Relation]) -> str:
        return self._named(self._one([name for relation in relations for name in relation.of("int")] or ["1"]))

    def _any_of(self, relations: Sequence[Relation]) -> str:
        return self._named(self._one([f"{relation.name}.{column}" for relation in relations for column in relation.columns]))

    def _named(self, name: str) -> str:
        """Sometimes an unqualified name: of this query, of an outer one, or of two relations."""
        return name.rpartition(".")[2] if self._chance(0.06) else name

    def _int(self, relations: Sequence[Relation], depth: int) -> str:
        choice = self._random.random()
        if depth <= 0 or choice < 0.4:
            return self._int_of(relations) if self._chance(0.8) else self._one(("1", "2", "NULL::int", "10"))
        if choice < 0.55:
            return f"({self._int(relations, depth - 1)} {self._one(('+', '-'))} {self._int(relations, depth - 1)})"
        if choice < 0.7:
            return f"coalesce({self._int(relations, depth - 1)}, {self._int(relations, 0)})"
        if choice < 0.8:
            return f"CASE WHEN {self._condition(relations, depth - 1)} THEN {self._int(relations, 0)} ELSE {self._int(relations, 0)} END"
        table, alias = self._one(("a", "b", "c", "k")), self._alias()
        inner = Relation(alias, COLUMNS[table])
        aggregate = self._one(("max({})", "min({})", "count({})", "count(DISTINCT {})")).format(self._int([inner], 0))
        return f"(SELECT {aggregate} FROM {table} {alias} WHERE {self._condition([inner, *relations], 0)})"

    def _condition(self, relations: Sequence[Relation], depth: int) -> str:
        choice = self._random.random()
        if depth <= 0 or choice < 0.3:
            operator = self._one(("=", "<>", "<", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
            simple = f"{self._int(relations, 0)} {operator} {self._int(relations, 0)}"
            return simple if self._chance(0.8) else f"{self._any_of(relations)} IS {self._one(('NULL', 'NOT NULL'))}"
        if choice < 0.5:
            return f"({self._condition(relations, depth - 1)} {self._one(('AND', 'OR'))} {self._condition(relations, depth - 1)})"
        if choice < 0.55:
            return f"NOT ({self._condition(relations, depth - 1)})"
        table, alias = self._one(("a", "b", "c", "k")), self._alias()
        inner = Relation(alias, COLUMNS[table])
        where = self._condition([inner, *relations], 0)
        if choice < 0.7:
            return f"{self._one(('', 'NOT '))}EXISTS (SELECT 1 FROM {table} {alias} WHERE {where})"
        if choice < 0.85:
            member = self._one((" IN", " NOT IN", " = ANY", " <> ALL"))
            return f"{self._int(relations, 0)}{member} (SELECT {self._int([inner], 0)} FROM {table} {alias} WHERE {where})"
        if choice < 0.93:
            row = f"({self._int(relations, 0)}, {self._int(relations, 0)})"
            return f"{row} {self._one(('=', '<>', '<', '>='))} ({self._int(relations, 0)}, {self._int(relations, 0)})"
        row = f"({self._int_of(relations)}, {self._int_of(relations)})"
        return f"{row} IN (SELECT {self._int([inner], 0)}, {self._int([inner], 0)} FROM {table} {alias})"

    # Queries.

    def query(self) -> str:
        return self._random.choice((self._plain, self._plain, self._starred, self._grouped, self._windowed, self._united, self._common))()

    def _order(self, count: int) -> str:
        places = self._random.sample(range(1, count + 1), count)
        endings = ("", "", " DESC", " NULLS FIRST", " DESC NULLS LAST")
        limit = self._one(("", "", " LIMIT 3", " LIMIT 2 OFFSET 1", " OFFSET 2", " FETCH FIRST 2 ROWS ONLY"))
        return " ORDER BY " + ", ".join(f"{place}{self._one(endings)}" for place in places) + limit

    def _plain(self) -> str:
        text, relations = self.source(1)
        items = [self._any_of(relations), self._int(relations, 2), self._int(relations, 1)][: self._random.randint(1, 3)]
        where = f" WHERE {self._condition(relations, 2)}" if self._chance(0.7) else ""
        distinct = self._one(("", "", "DISTINCT "))
        return f"SELECT {distinct}{', '.join(items)} FROM {text}{where}{self._order(len(items))}"

    def _starred(self) -> str:
        text, relations = self.source(1)
        star = self._one(("*", "*", f"{relations[0].name}.*", f"*, {self._any_of(relations)}"))
        where = f" WHERE {self._condition(relations, 1)}" if self._chance(0.5) else ""
        if self._chance(0.3):
            return f"SELECT q.* FROM (SELECT {star} FROM {text}{where}) q"
        return f"SELECT {star} FROM {text}{where}"

    def _grouped(self) -> str:
        text, relations = self.source(1)
        keys = [self._any_of(relations) for _ in range(self._random.randint(0, 2))]
        number = self._int(relations, 1)
        counted = [self._one(("count(*)", f"sum({number})::bigint", f"max({number})", f"count(DISTINCT {number})")) for _ in range(2)]
        counted.append(f"count(*) FILTER (WHERE {self._condition(relations, 0)})")
        where = f" WHERE {self._condition(relations, 1)}" if self._chance(0.4) else ""
        having = f" HAVING {self._one(('count(*) > 1', f'max({number}) IS NOT NULL'))}" if self._chance(0.4) else ""
        extra = [self._any_of(relations)] if self._chance(0.15) else []
        items = [*keys, *counted, *extra]
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {', '.join(items)} FROM {text}{where}{group}{having}{self._order(len(items))}"

    def _windowed(self) -> str:
        text, relations = self.source(0)
        part = f"PARTITION BY {self._any_of(relations)} " if self._chance(0.6) else ""
        order = f"ORDER BY {self._int_of(relations)}{self._one(('', ' DESC', ' NULLS FIRST'))}"
        number = self._int(relations, 0)
        call = self._one(("rank()", "dense_rank()", "count(*)", f"max({number})", f"min({number})", f"count({number})"))
        return f"SELECT {self._any_of(relations)}, {call} OVER ({part}{order}) FROM {text}{self._order(2)}"

    def _united(self) -> str:
        parts = []
        for _ in range(self._random.randint(2, 3)):
            text, relations = self.source(0)
            part = f"SELECT {self._int(relations, 1)}, {self._int(relations, 0)} FROM {text}"
            parts.append(f"({part})" if self._chance(0.3) else part)
        whole = parts[0]
        for part in parts[1:]:
            whole = f"{whole} {self._one(('UNION', 'UNION ALL', 'INTERSECT', 'EXCEPT'))} {part}"
        return whole + self._order(2)

    def _common(self) -> str:
        text, relations = self.source(0)
        inner = f"SELECT {self._int_of(relations)} AS x, {self._int(relations, 1)} AS q FROM {text}"
        other = self._one(("a", "b", "c", "w"))
        kind = self._one(("JOIN", "LEFT JOIN", "FULL JOIN"))
        name = self._one(("w", "w", "a"))
        other = "b" if name == "a" and other == "w" else other
        return f"WITH {name} AS ({inner}) SELECT l.q, r.x FROM {name} l {kind} {other} r USING (x){self._order(2)}"

    # Changes.

    def change(self) -> str:
        return self._random.choice(
            (self._insert, self._insert, self._upsert, self._update, self._update, self._update_from, self._delete)
        )()

    def _insert(self) -> str:
        text, relations = self.source(0)
        where = f" WHERE {self._condition(relations, 1)}"
        number = self._int(relations, 1)
        way = self._one(("select", "values", "few", "ignore"))
        if way == "values":
            count = self._random.randint(50, 90)
            return f"INSERT INTO k (id, v) VALUES ({count}, (SELECT max(v) FROM k)), ({count + 1}, NULL) RETURNING id + 1, v, n"
        if way == "few":
            return f"INSERT INTO k VALUES ({self._random.randint(1, 99)}) RETURNING *"
        ending = " ON CONFLICT DO NOTHING" if way == "ignore" else ""
        return f"INSERT INTO k (id, v) SELECT DISTINCT {number} + 100, 1 FROM {text}{where}{ending}"

    def _upsert(self) -> str:
        value = self._one(("excluded.v", "k.v + excluded.v", "coalesce(k.v, 0) + 1", "NULL"))
        where = self._one(("", "", " WHERE k.v IS NOT NULL", " WHERE excluded.v > k.v"))
        rows = ", ".join(f"({self._random.randint(1, 6)}, {self._one(('1', '7', 'NULL'))})" for _ in range(self._random.randint(1, 2)))
        returning = self._one(("", " RETURNING id, v", " RETURNING k.*"))
        if where and rows.count("(") > 1:
            where = ""
        return f"INSERT INTO k (id, v) VALUES {rows} ON CONFLICT (id) DO UPDATE SET v = {value}{where}{returning}"

    def _update(self) -> str:
        table = self._one(("a", "b"))
        column = "y" if table == "a" else "z"
        own = [Relation(table, COLUMNS[table])]
        returning = self._one(("", f" RETURNING id, {table}.x", " RETURNING *"))
        if self._chance(0.3):
            where = self._condition([Relation("o", COLUMNS[table]), *own], 0)
            value = f"({column}, x) = (SELECT max(o.{column}), min(o.x) FROM {table} o WHERE {where})"
        else:
            value = f"{column} = {self._int(own, 3)}, x = {self._int(own, 1)}"
        return f"UPDATE {table} SET {value} WHERE {self._condition(own, 2)}{returning}"

    def _update_from(self) -> str:
        alias = self._alias()
        condition = self._condition([Relation("a", COLUMNS["a"])], 0)
        # Joined by its key, so that no row has two matches.
        return f"UPDATE a SET y = {alias}.z FROM b {alias} WHERE {alias}.id = a.id AND {condition} RETURNING a.id, a.y"

    def _delete(self) -> str:
        if self._chance(0.4):
            alias = self._alias()
            both = [Relation("k", COLUMNS["k"]), Relation(alias, COLUMNS["b"])]
            return f"DELETE FROM k USING b {alias} WHERE {self._condition(both, 1)} AND k.id = {alias}.id"
        own = [Relation("k", COLUMNS["k"])]
        return f"DELETE FROM k WHERE {self._condition(own, 2)} RETURNING id, v"


def statements(seed: int, count: int) -> list[str]:
    """Queries, and after every fourth one a change with a query of its result."""
    grammar = StatementGrammar(seed)
    found: list[str] = []
    for number in range(count):
        found.append(grammar.query())
        if number % 4 == 3:
            change = grammar.change()
            table = next(word for word in change.split() if word in COLUMNS)
            found += [change, f"SELECT * FROM {table} ORDER BY 1"]
    return found
