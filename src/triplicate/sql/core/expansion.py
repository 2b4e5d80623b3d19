"""How large a statement becomes when SQLite puts views and subqueries into it. Pure.

SQLite replaces a column of a subquery or view by its expression, wherever the outer query names the column. A few lines can become
billions of terms so: ``select a || a as a from (select a || a as a from …)`` doubles with each level. SQLite does this while it prepares a
statement, and nothing interrupts it. So the size is computed before: the number of terms, which are tokens, where the name of a column
counts as the terms of its expression, and the name of a view or common table expression as the terms of its query. SQLite may do less.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import Token, identifier, sqlite_tokens

EXPANSION_MAX = 100_000
"""Upper bound on the terms that views and subqueries add to a statement. SQLite takes up to some 30 ms for as many."""
_QUERY_TERMS = 20
"""A SELECT costs SQLite as much as this number of terms, beside its own."""
_DEPTH_MAX = 100
"""Upper bound on queries within queries, and on views that read views."""
_ROUNDS_MAX = 20
"""Upper bound on the rounds in which the sizes of generated columns are found. After as many, one that doubles is too large."""
_COMPOUNDS = frozenset(("UNION", "EXCEPT", "INTERSECT"))
_QUERIES = frozenset(("SELECT", "WITH", "VALUES"))
_AFTER_SOURCES = frozenset(("WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "RETURNING", "SET"))
_CHANGES = (("DELETE", "FROM"), ("ALTER", "TABLE"))
_NAMES = ("word", "quoted")


@dataclass(slots=True)
class Source:
    """A view, subquery or table that a query reads."""

    weights: dict[str, int] = field(default_factory=dict)
    """Maps a column, as `fold` has it, to the terms of its expression, if they are more than one."""
    size: int = 1
    """The terms that it adds to a query that reads it."""
    unnamed: int = 1
    """The most terms of a column whose name is not known."""
    places: list[int] | None = None
    """The terms of each column by its place, if they are known."""

    def add(self, name: str | None, weight: int) -> None:
        """Add a column; None for one whose name is not known."""
        if name is None:
            self.unnamed = max(self.unnamed, weight)
        elif weight > self.weights.get(name, 1):
            self.weights[name] = weight

    @property
    def heaviest(self) -> int:
        """The most terms of any column."""
        return max(self.unnamed, *self.weights.values()) if self.weights else self.unnamed

    def renamed(self, names: Sequence[str]) -> Source:
        """With columns of other names."""
        if self.places is None or len(self.places) != len(names):
            return Source({}, self.size, self.heaviest)
        found = Source(size=self.size)
        for name, weight in zip(names, self.places, strict=True):
            found.add(name, weight)
        return found

    def beside(self, other: Source) -> Source:
        """The columns of a compound of both. They go by their places, and the first part names them."""
        size, heaviest = self.size + other.size, max(self.heaviest, other.heaviest)
        places = None
        if self.places is not None and other.places is not None and len(self.places) == len(other.places):
            places = [max(pair) for pair in zip(self.places, other.places, strict=True)]
        if other.heaviest == 1:
            return Source(self.weights, size, self.unnamed, places)
        return Source({}, size, heaviest, places)


TABLE = Source()


@dataclass(slots=True)
class _Scope:
    """The names that a query sees."""

    sizing: _Sizing
    parent: _Scope | None = None
    common: dict[str, Source] = field(default_factory=dict)
    sources: list[Source] = field(default_factory=list)
    depth: int = 0

    def inner(self) -> _Scope:
        """The scope of a query within this one. Raises SqlError 54001 for too many."""
        if self.depth >= _DEPTH_MAX:
            raise SqlError("54001", f"a query may stand within {_DEPTH_MAX} others")
        return _Scope(self.sizing, self, depth=self.depth + 1)

    def relation(self, name: str) -> Source:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.common:
                return scope.common[name]
            scope = scope.parent
        return self.sizing.relation(name)

    def weight(self, column: str) -> int:
        scope: _Scope | None = self
        while scope is not None:
            found = max((source.weights.get(column, source.unnamed) for source in scope.sources), default=1)
            if found > 1:
                return found
            scope = scope.parent
        return 1


class SchemaSizes:
    """The sizes of the views, tables and triggers of a schema, computed when they are asked for. Threads may use it at the same time.

    Args:
        relations: (name, text) of each view and of each table that may have generated columns.
        triggers: (table or view, text) of each trigger.
    """

    def __init__(self, relations: Iterable[tuple[str, str]], triggers: Iterable[tuple[str, str]]) -> None:
        self.texts = {fold(name): text for name, text in relations}
        self.triggers: dict[str, list[str]] = {}
        for table, text in triggers:
            self.triggers.setdefault(fold(table), []).append(text)
        self.known: dict[str, Source] = {}
        self.known_triggers: dict[str, tuple[list[str], int]] = {}
        """Maps a table to the tables that its triggers change, and their size."""

    def check(self, tokens: Sequence[Token], characters_max: int | None = None) -> None:
        """Check a statement.

        Args:
            characters_max: of views, tables and triggers that may be read for it. Those read for another statement do not count.

        Raises:
            SqlError: 54001, it would become too large; 54000, it needs more than these characters.
        """
        queries = sum(token.upper in _QUERIES for token in tokens)
        if not self._may_grow(tokens, queries):
            return
        added = self.size(tokens, characters_max) - len(tokens) - queries * _QUERY_TERMS
        if added > EXPANSION_MAX:
            shown = added if added < 10**12 else "more than 10^12"
            raise SqlError(
                "54001",
                f"views and subqueries would add {shown} terms to the statement, {EXPANSION_MAX} are allowed",
                hint="Each use of a computed column repeats its expression, and each use of a view its query. Store a result in a table.",
            )

    def _may_grow(self, tokens: Sequence[Token], queries: int) -> bool:
        if queries > 1 or (tokens and tokens[0].upper == "CREATE"):
            return True
        if not self.texts and not self.triggers:
            return False
        names = [fold(identifier(token)) for token in tokens if token.kind in _NAMES]
        return any(name in self.texts or name in self.triggers for name in names)

    def size(self, tokens: Sequence[Token], characters_max: int | None = None) -> int:
        """The size of a statement, in terms."""
        return _Sizing(self, characters_max).size(tokens)


class _Sizing:
    """The computation of one statement's size."""

    def __init__(self, schema: SchemaSizes, characters_max: int | None) -> None:
        self._schema = schema
        self._characters_left = characters_max
        self._opened: set[str] = set()
        """The views and tables whose sizes are being computed, each for the one before."""

    def size(self, tokens: Sequence[Token]) -> int:
        text, scope = _Text(tokens), _Scope(self)
        if tokens and tokens[0].upper == "CREATE":
            if any(token.upper == "TRIGGER" for token in tokens[:4]):
                return text.trigger(scope)
            return text.defined(scope).size
        changed = text.changed_tables()
        scope.sources += map(self.relation, changed)
        added = sum(source.size for source in scope.sources) + self._triggers_of(changed)
        return text.statement(0, len(tokens), scope).size + added

    def _read(self, text: str) -> _Text:
        """Raises SqlError 54000 where too much would be read."""
        if self._characters_left is not None:
            self._characters_left -= len(text)
            if self._characters_left < 0:
                raise SqlError("54000", "the views and triggers of the statement are too long to be read at once")
        return _Text(sqlite_tokens(text))

    def relation(self, name: str) -> Source:
        """A view or table.

        Raises:
            SqlError: 54001, views read each other too deeply.
        """
        text, found = self._schema.texts.get(name), self._schema.known.get(name)
        if text is None or found is not None or name in self._opened:
            return found or TABLE  # A view that reads itself fails in SQLite.
        if len(self._opened) >= _DEPTH_MAX:
            raise SqlError("54001", f"a view may read {_DEPTH_MAX} others, each through the one before")
        self._opened.add(name)
        found = self._schema.known[name] = self._read(text).defined(_Scope(self))
        self._opened.remove(name)
        return found

    def _triggers_of(self, tables: Sequence[str]) -> int:
        """The size of the triggers of tables, and of the tables that they change."""
        waiting, seen, size = list(tables), set[str](), 0
        while waiting:
            name = waiting.pop()
            if name not in seen and name in self._schema.triggers:
                changed, added = self._triggers_on(name)
                waiting += changed
                size += added
            seen.add(name)
        return size

    def _triggers_on(self, table: str) -> tuple[list[str], int]:
        """The tables that the triggers of a table change, and their size."""
        found = self._schema.known_triggers.get(table)
        if found is None:
            texts = [self._read(text) for text in self._schema.triggers[table]]
            changed = [name for text in texts for name in text.changed_tables()]
            found = self._schema.known_triggers[table] = changed, sum(text.trigger(_Scope(self)) for text in texts)
        return found


def fold(name: str) -> str:
    """A name as SQLite compares it: without the difference between capitals and small letters of ASCII."""
    return name.lower() if name.isascii() else "".join([one.lower() if one.isascii() else one for one in name])


class _Text:
    """The tokens of a statement, and the places of its brackets. All places are indexes of tokens; `end` is behind the last."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self._closing: dict[int, int] = {}
        """Maps the place of an opening bracket to that of its closing one."""
        opened: list[int] = []
        for at, token in enumerate(tokens):
            if token.text == "(" and token.kind == "operator":
                opened.append(at)
            elif token.text == ")" and token.kind == "operator" and opened:
                self._closing[opened.pop()] = at
        self._closing |= dict.fromkeys(opened, len(tokens))

    def changed_tables(self) -> list[str]:
        """The tables that the statement, or the statements of a trigger, change."""
        tokens, found = self.tokens, list[str]()
        for at, token in enumerate(tokens):
            before = tokens[at - 1].upper if at else ""
            is_update = token.upper == "UPDATE" and before not in ("DO", "BEFORE", "AFTER", "OF", "ON")
            if is_update or token.upper == "INTO" or (before, token.upper) in _CHANGES:
                following = at + 3 if is_update and self._upper(at + 1) == "OR" else at + 1
                following += 2 * (self._upper(following + 1) == ".")
                if following < len(tokens) and tokens[following].kind in _NAMES:
                    found.append(self._name(following))
        return found

    def trigger(self, scope: _Scope) -> int:
        """The size of a trigger's condition and statements."""
        begin = next((at for at, token in enumerate(self.tokens) if token.upper == "BEGIN"), len(self.tokens))
        size, start = self._expression(0, begin, scope), begin + 1
        for at in range(begin + 1, len(self.tokens)):
            if self.tokens[at].upper == ";":
                size += self.statement(start, at, scope).size
                start = at + 1
        return size

    def defined(self, scope: _Scope) -> Source:
        """A view or a table, from its CREATE."""
        end = len(self.tokens)
        at_as = next((at for at in self._outside(0, end) if self._upper(at) == "AS"), None)
        opening = next((at for at in range(end) if at in self._closing), end)
        if at_as is None:
            return self._generated(opening + 1, self._closing[opening], scope) if opening < end else TABLE
        found = self.statement(at_as + 1, end, scope)
        return found.renamed(self._names_in(opening)) if opening < at_as else found

    def _generated(self, start: int, end: int, scope: _Scope) -> Source:
        """A table with generated columns: SQLite computes one from another in its place, unless it is stored."""
        found, definitions = Source(), list[tuple[str, int, int]]()
        inner = _Scope(scope.sizing, scope, sources=[found])
        for first, behind in self._parts(start, end):
            words = {self._upper(at): at for at in self._outside(first, behind)}
            opening = words.get("AS", end) + 1
            if "STORED" not in words and opening in self._closing:
                definitions.append((self._name(first), opening + 1, self._closing[opening]))
        for _ in range(_ROUNDS_MAX):
            before = dict(found.weights)
            for name, first, behind in definitions:
                found.add(name, self._expression(first, behind, inner))
            if found.weights == before or found.heaviest > EXPANSION_MAX:
                break
            definitions.reverse()  # A column may be computed from later ones.
        found.size += sum(found.weights.values())
        return found

    def statement(self, start: int, end: int, scope: _Scope) -> Source:
        """A query, or a change with its query."""
        at = next((at for at in self._outside(start, end) if self._upper(at) in _QUERIES), end)
        found = self._query(at, end, scope) if at < end else Source(size=0)
        if at > start:
            found.size += self._core(start, at, scope.inner()).size
        return found

    def _query(self, start: int, end: int, scope: _Scope) -> Source:
        """A query with its common table expressions, from its first word; behind WITH also a change."""
        scope = scope.inner()
        if self._upper(start) == "WITH":
            return self.statement(self._common(start, end, scope), end, scope)
        cuts = [at for at in self._outside(start, end) if self._upper(at) in _COMPOUNDS]
        result = self._core(start, min([*cuts, end]), scope.inner())
        for cut, behind in zip(cuts, [*cuts, end][1:], strict=True):
            part = self._core(cut + 1 + (self._upper(cut + 1) == "ALL"), behind, scope.inner())
            result = result.beside(part)
        return result

    def _common(self, start: int, end: int, scope: _Scope) -> int:
        """Add the common table expressions behind WITH to the scope; the place behind them."""
        at = start + 1 + (self._upper(start + 1) == "RECURSIVE")
        while at < end and self.tokens[at].kind in _NAMES:
            name, opening = self._name(at), at + 1
            has_names = opening in self._closing
            at = self._closing[opening] + 1 if has_names else opening
            while at < end and at not in self._closing:
                at += 1
            if at >= end:
                break
            scope.common[name] = TABLE  # Within its own query the name stands for the rows of the step before.
            found = self.statement(at + 1, self._closing[at], scope)
            scope.common[name] = found.renamed(self._names_in(opening)) if has_names else found
            at = self._closing[at] + 1
            if self._upper(at) != ",":
                break
            at += 1
        return at

    def _core(self, start: int, end: int, scope: _Scope) -> Source:
        """One SELECT or VALUES with the clauses behind it, or a change without its query."""
        at_from = next((at for at in self._outside(start, end) if self._upper(at) == "FROM"), end)
        conditions = self._sources(at_from, end, scope)
        found = Source(size=_QUERY_TERMS + sum(source.size for source in scope.sources))
        first = start + (self._upper(start) == "SELECT")
        first += first > start and self._upper(first) in ("DISTINCT", "ALL")
        places: list[int] | None = []
        for item, behind in self._parts(first, at_from):
            if behind > item and self._upper(behind - 1) == "*" and (behind == item + 1 or self._upper(behind - 2) == "."):
                for source in scope.sources:
                    for name, weight in source.weights.items():
                        found.add(name, weight)
                    found.add(None, source.unnamed)
                    found.size += sum(source.weights.values())
                places = None
                continue
            is_named = behind - 2 >= item and self._upper(behind - 2) == "AS"
            weight = self._expression(item, behind - 2 * is_named, scope)
            found.size += weight + 1
            if places is not None:
                places.append(weight)
            for shown in self._item_names(item, behind):
                found.add(shown, weight)
        found.places = places
        found.size += sum(self._expression(first, behind, scope) for first, behind in conditions)
        return found

    def _names_in(self, opening: int) -> list[str]:
        """The names in a bracket."""
        return [self._name(first) for first, behind in self._parts(opening + 1, self._closing[opening]) if first < behind]

    def _item_names(self, start: int, end: int) -> Iterator[str | None]:
        """The names that an item of a select list may have; None where there may be another."""
        if start >= end:
            return
        before = self._upper(end - 2) if end - 2 >= start else "."
        if self.tokens[end - 1].kind in _NAMES:
            yield self._name(end - 1)
        if before not in ("AS", "."):
            yield None

    def _sources(self, start: int, end: int, scope: _Scope) -> list[tuple[int, int]]:
        """Add what stands behind FROM to the scope. The start and end of each expression there, and in the clauses that follow."""
        conditions: list[tuple[int, int]] = []
        is_expected, condition = start < end and self._upper(start) != "FROM", start
        for at in self._outside(start, end, brackets=True):
            word = self._upper(at)
            if word in _AFTER_SOURCES:
                return [*conditions, (condition, at), (at, end)]
            if word in ("FROM", "JOIN", ","):
                conditions.append((condition, at))
                is_expected = True
            elif is_expected and at in self._closing:
                behind = self._closing[at]
                if self._upper(at + 1) in _QUERIES:
                    scope.sources.append(self._query(at + 1, behind, scope))
                else:
                    conditions += self._sources(at + 1, behind, scope)
                is_expected, condition = False, behind + 1
            elif is_expected and self.tokens[at].kind in _NAMES and self._upper(at + 1) != ".":
                called = at + 1 in self._closing
                scope.sources.append(TABLE if called else scope.relation(self._name(at)))
                is_expected, condition = False, at + 1
        return [*conditions, (condition, end)]

    def _expression(self, start: int, end: int, scope: _Scope) -> int:
        size, at = 0, start
        while at < end:
            if at in self._closing and self._upper(at + 1) in _QUERIES:
                size += self._query(at + 1, self._closing[at], scope).size
                at = self._closing[at]
            elif self.tokens[at].kind in _NAMES and self._upper(at + 1) not in ("(", "."):
                size += scope.weight(self._name(at))
            else:
                size += 1
            at += 1
        return size

    def _outside(self, start: int, end: int, *, brackets: bool = False) -> Iterator[int]:
        """The places outside of brackets. With `brackets`, those of the opening ones too."""
        at = start
        while at < end:
            is_bracket = at in self._closing
            if not is_bracket or brackets:
                yield at
            at = self._closing[at] + 1 if is_bracket else at + 1

    def _parts(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Start and end of the parts between the commas outside of brackets."""
        for at in self._outside(start, end):
            if self._upper(at) == ",":
                yield start, at
                start = at + 1
        yield start, end

    def _upper(self, at: int) -> str:
        return self.tokens[at].upper if at < len(self.tokens) else ""

    def _name(self, at: int) -> str:
        return fold(identifier(self.tokens[at]))
