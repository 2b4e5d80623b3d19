"""The content of SQLite's schema, read once for each schema: tables, columns, indexes, constraints."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace

import apsw

from triplicate.sql.catalogue.table_definitions import IndexDefinition, TableDefinition, read_index, read_table
from triplicate.sql.core.view_columns import shown_type, view_columns
from triplicate.sql.storage.sqlite_schema import KeyIndex, is_internal, key_index_of


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """One column. `number` is from 1, `declared` the type as written, `default` the text of an expression. `generated` is ``s`` for a
    generated column, else empty.
    """

    name: str
    number: int
    declared: str
    not_null: bool
    default: str | None
    key: int
    """Position in the primary key from 1, or 0."""
    generated: str


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """One index. `origin` is ``c`` for CREATE INDEX, ``u`` for a UNIQUE constraint, ``pk`` for a primary key, declared or added."""

    name: str
    unique: bool
    origin: str
    columns: tuple[tuple[int, bool], ...]
    """(column number from 1, whether descending) of each key column; number 0 is an expression."""
    definition: IndexDefinition


@dataclass(frozen=True, slots=True)
class ForeignKeyFacts:
    """One foreign key. `table` is the referenced table."""

    table: str
    columns: tuple[str, ...]
    referenced: tuple[str, ...]
    """The referenced columns; empty for the primary key of the referenced table."""
    on_update: str
    on_delete: str


@dataclass(slots=True)
class RelationFacts:
    """One table or view. `kind` is ``r`` for a table, ``v`` for a view."""

    name: str
    kind: str
    definition: TableDefinition
    columns: list[ColumnFacts] = field(default_factory=list)
    indexes: list[IndexFacts] = field(default_factory=list)
    foreign_keys: list[ForeignKeyFacts] = field(default_factory=list)
    triggers: list[tuple[str, str]] = field(default_factory=list)
    """(name, CREATE TRIGGER) of each, by name."""
    sql: str = ""
    """The statement that made it, as it is stored."""
    rowid_column: str | None = None
    """The INTEGER PRIMARY KEY, which is the rowid and has no index."""

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(column.name for column in sorted(self.columns, key=lambda one: one.key) if column.key)


_RELATIONS = """
select l.name, l.type, l.wr, s.sql from pragma_table_list l
left join main.sqlite_schema s on s.name = l.name and s.type in ('table', 'view')
where l.schema = 'main' and l.type in ('table', 'view', 'virtual') and l.name not like 'sqlite\\_%' escape '\\'
and (:only is null or lower(l.name) = :only) order by l.name
"""
_COLUMNS = """
select l.name, x.name, x.type, x."notnull", x.dflt_value, x.pk, x.hidden from pragma_table_list l join pragma_table_xinfo(l.name, 'main') x
where l.schema = 'main' and l.type = 'table' and (:only is null or lower(l.name) = :only) and x.hidden <> 1 order by l.name, x.cid
"""
_UNSURE = """
select l.name, s.sql from pragma_table_list l left join main.sqlite_schema s on s.name = l.name and s.type = 'view'
where l.schema = 'main' and l.type in ('view', 'virtual') and (:only is null or lower(l.name) = :only)
"""
_COLUMNS_OF = """
select ?1, name, type, "notnull", dflt_value, pk, hidden from pragma_table_xinfo(?1, 'main') where hidden <> 1 order by cid
"""
_INDEXES = """
select m.name, i.name, i."unique", i.origin, x.cid, x."desc", s.sql from main.sqlite_schema m join pragma_index_list(m.name, 'main') i
join pragma_index_xinfo(i.name, 'main') x left join main.sqlite_schema s on s.type = 'index' and s.name = i.name
where m.type = 'table' and (:only is null or lower(m.name) = :only) and x.key order by m.name, i.name, x.seqno
"""
_FOREIGN_KEYS = """
select m.name, f.id, f."table", f."from", f."to", f.on_update, f.on_delete from main.sqlite_schema m
join pragma_foreign_key_list(m.name, 'main') f where m.type = 'table' and (:only is null or lower(m.name) = :only)
order by m.name, f.id, f.seq
"""


_TRIGGERS = """
select tbl_name, name, sql from main.sqlite_schema where type = 'trigger' and (:only is null or lower(tbl_name) = :only) order by name
"""


def read_facts(connection: apsw.Connection, only: str | None = None) -> list[RelationFacts]:
    """The users' tables and views in the order of their names, without Triplicate's and SQLite's own.

    Args:
        only: the name of the only one, in any case; None for all.
    """
    chosen = {"only": None if only is None else only.lower()}
    relations: dict[str, RelationFacts] = {}
    without_rowid: set[str] = set()
    for name, kind, without, sql in connection.execute(_RELATIONS, chosen):
        if not is_internal(str(name)):
            relations[str(name)] = RelationFacts(str(name), "v" if kind == "view" else "r", read_table(str(sql or "")), sql=str(sql or ""))
            if without:
                without_rowid.add(str(name))
    _add_columns(relations, connection.execute(_COLUMNS, chosen))
    for name, sql in connection.execute(_UNSURE, chosen).fetchall():
        # SQLite fails for a view that it cannot compute. It has no columns here, and everything else has.
        with suppress(apsw.Error):
            _add_columns(relations, connection.execute(_COLUMNS_OF, (name,)).fetchall())
            _add_view_types(relations.get(str(name)), str(sql or ""))
    _add_indexes(relations, connection.execute(_INDEXES, chosen))
    _add_foreign_keys(relations, connection.execute(_FOREIGN_KEYS, chosen))
    by_lower_name = {name.lower(): relation for name, relation in relations.items()}
    for table, name, sql in connection.execute(_TRIGGERS, chosen):
        relation = by_lower_name.get(str(table).lower())
        if relation is not None:
            relation.triggers.append((str(name), str(sql)))
    for relation in relations.values():
        if any(index.definition.is_marked for index in relation.indexes):
            _mark_added_key(relation, key_index_of(connection, relation.name))
        _mark_key(relation, without_rowid=relation.name in without_rowid)
    return list(relations.values())


def _add_columns(relations: dict[str, RelationFacts], rows: Iterable[tuple[object, ...]]) -> None:
    for table, name, declared, not_null, default, key, hidden in rows:
        relation = relations.get(str(table))
        if relation is not None:
            relation.columns.append(
                ColumnFacts(
                    str(name),
                    len(relation.columns) + 1,
                    str(declared or "").removesuffix(" GENERATED ALWAYS"),
                    bool(not_null),
                    None if default is None else str(default),
                    int(str(key)),
                    "s" if hidden in (2, 3) else "",
                )
            )


def _add_view_types(view: RelationFacts | None, sql: str) -> None:
    if view is not None:
        typed = view_columns(sql, [(column.name, column.declared) for column in view.columns])
        view.columns = [replace(column, declared=shown_type(kept)) for column, (_, kept) in zip(view.columns, typed, strict=True)]


def _add_indexes(relations: dict[str, RelationFacts], rows: Iterable[tuple[object, ...]]) -> None:
    rows_by_index: dict[tuple[str, str], list[tuple[object, ...]]] = {}
    for row in rows:
        rows_by_index.setdefault((str(row[0]), str(row[1])), []).append(row)
    for (table, name), key_rows in rows_by_index.items():
        relation = relations.get(table)
        if relation is None:
            continue
        rowid = next((column.number for column in relation.columns if column.key), 0)
        # SQLite numbers columns from 0; -1 is the rowid, -2 an expression.
        numbers = [int(str(key_row[4])) for key_row in key_rows]
        columns = tuple(
            (number + 1 if number >= 0 else rowid if number == -1 else 0, bool(key_row[5]))
            for number, key_row in zip(numbers, key_rows, strict=True)
        )
        definition = read_index(str(key_rows[0][6] or ""))
        relation.indexes.append(IndexFacts(name, bool(key_rows[0][2]), str(key_rows[0][3]), columns, definition))


def _add_foreign_keys(relations: dict[str, RelationFacts], rows: Iterable[tuple[object, ...]]) -> None:
    rows_by_key: dict[tuple[str, int], list[tuple[object, ...]]] = {}
    for row in rows:
        rows_by_key.setdefault((str(row[0]), int(str(row[1]))), []).append(row)
    for (table, _), key_rows in rows_by_key.items():
        if table in relations:
            referenced = tuple(str(key_row[4]) for key_row in key_rows if key_row[4] is not None)
            columns = tuple(str(key_row[3]) for key_row in key_rows)
            key = ForeignKeyFacts(str(key_rows[0][2]), columns, referenced, str(key_rows[0][5]), str(key_rows[0][6]))
            relations[table].foreign_keys.append(key)


def _mark_added_key(relation: RelationFacts, key: KeyIndex | None) -> None:
    if key is not None:
        places = {column: place for place, column in enumerate(key.columns, start=1)}
        relation.indexes = [replace(index, origin="pk") if index.name == key.name else index for index in relation.indexes]
        relation.columns = [replace(column, key=places.get(column.name, 0)) for column in relation.columns]


def _mark_key(relation: RelationFacts, *, without_rowid: bool) -> None:
    keyed = [column for column in relation.columns if column.key]
    has_index = any(index.origin == "pk" for index in relation.indexes)
    if len(keyed) == 1 and not has_index and not without_rowid and keyed[0].declared.upper() == "INTEGER":
        relation.rowid_column = keyed[0].name
    if without_rowid or relation.rowid_column is not None:
        # The key of such a table cannot be NULL, with or without NOT NULL.
        relation.columns = [
            ColumnFacts(one.name, one.number, one.declared, one.not_null or one.key > 0, one.default, one.key, one.generated)
            for one in relation.columns
        ]
