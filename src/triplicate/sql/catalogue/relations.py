"""The rows of each catalogue table, from the facts of a schema. Pure.

The tables have the columns of PostgreSQL 15, see `system_tables`. Tables without a counterpart here (enumerations, comments, publications)
exist and are empty. Object ids depend on names alone: they are the same on every node, in every session, and after a restart.
Source: PostgreSQL 15 documentation, "System Catalogs" and "The Information Schema".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from triplicate.sql.catalogue.constraint_names import (
    call_name,
    check_names,
    column_names,
    expression_names,
    foreign_key_name,
    index_name,
    key_name,
)
from triplicate.sql.catalogue.live_tables import LIVE_TABLES
from triplicate.sql.catalogue.object_ids import object_ids
from triplicate.sql.catalogue.object_names import listed, name_parts, quoted
from triplicate.sql.catalogue.role_relations import ADMINISTRATOR_OID, PRIVILEGE_TABLES, RoleCatalogue
from triplicate.sql.catalogue.schema_facts import ColumnFacts, ForeignKeyFacts, IndexFacts, RelationFacts
from triplicate.sql.catalogue.stored_definitions import trigger_text, trigger_type, view_text
from triplicate.sql.catalogue.system_tables import SYSTEM_OIDS, SYSTEM_TABLES, system_row
from triplicate.sql.catalogue.table_definitions import IndexDefinition
from triplicate.sql.catalogue.type_names import BPCHAR, TYPES, TypeFacts, declared_type, format_type
from triplicate.sql.core.access_rights import NOTHING_STORED, AccessRights
from triplicate.sql.core.interface import Row, Value
from triplicate.sql.core.lexer import sqlite_tokens

CATALOG, PUBLIC, INFORMATION = 11, 2200, 13000
OWNER = ADMINISTRATOR_OID
HEAP, BTREE, DEFAULT_SPACE = 2, 403, 1663
_SEQUENCE_COLUMNS = (("last_value", 20), ("log_cnt", 20), ("is_called", 16))
TABLES: dict[str, str] = {
    **SYSTEM_TABLES,
    "information_schema.schemata": "catalog_name name, schema_name name, schema_owner name",
    "information_schema.tables": "table_catalog name, table_schema name, table_name name, table_type text, is_insertable_into text,"
    " is_typed text",
    "information_schema.columns": "table_catalog name, table_schema name, table_name name, column_name name, ordinal_position integer,"
    " column_default text, is_nullable text, data_type text, character_maximum_length integer, numeric_precision integer,"
    " numeric_scale integer, datetime_precision integer, udt_catalog name, udt_schema name, udt_name name, is_identity text,"
    " is_generated text, generation_expression text, is_updatable text",
    "information_schema.table_constraints": "constraint_catalog name, constraint_schema name, constraint_name name, table_catalog name,"
    " table_schema name, table_name name, constraint_type text, is_deferrable text, initially_deferred text, enforced text",
    "information_schema.key_column_usage": "constraint_catalog name, constraint_schema name, constraint_name name, table_catalog name,"
    " table_schema name, table_name name, column_name name, ordinal_position integer, position_in_unique_constraint integer",
    **PRIVILEGE_TABLES,
    **LIVE_TABLES,
}
"""Maps the name of each catalogue table to its columns, each with its type."""
FUNCTION_TABLES = frozenset(("json_each", "json_tree", "jsonb_each", "jsonb_tree", "generate_series", "pg_unnest"))
"""Tables of a function's results."""


def is_reserved(name: str) -> bool:
    """Whether a user's table or view of this name would hide one that queries read, those of clients or the database's own."""
    lowered = name.lower()
    return lowered in TABLES or lowered in FUNCTION_TABLES or lowered.startswith("pragma_")


@dataclass(slots=True)
class Catalogue:
    """The rows of all tables, and the maps that the functions use."""

    rows: dict[str, list[Row]]
    roles: RoleCatalogue
    relations: dict[str, int] = field(default_factory=dict)
    """Maps the name of each table, view and index to its oid."""
    names: dict[int, str] = field(default_factory=dict)
    """Maps the oid of a relation to its name, in quotes where SQL needs them."""
    constraint_texts: dict[int, str] = field(default_factory=dict)
    """Maps the oid of a constraint to its definition, in which the expression of a CHECK has one pair of brackets."""
    index_texts: dict[int, tuple[str, str | None, tuple[str, ...]]] = field(default_factory=dict)
    """Maps the oid of an index to (CREATE INDEX, its condition, the text of each key column)."""
    definitions: dict[int, str] = field(default_factory=dict)
    """Maps the oid of a view to its query, and that of a trigger to its CREATE TRIGGER."""
    stored: dict[int, str] = field(default_factory=dict)
    """Maps the oid of a table or index to its name in SQLite's schema."""
    indexes: dict[int, list[int]] = field(default_factory=dict)
    """Maps the oid of a table to those of its indexes."""


def build(facts: Sequence[RelationFacts], database: str, access: AccessRights = NOTHING_STORED) -> Catalogue:
    """The catalogue of one schema.

    Args:
        facts: of all tables and views. database: its name. access: its roles and rights.
    """
    builder = _Builder(facts, RoleCatalogue(access, database), database)
    for relation in facts:
        builder.add(relation)
    return builder.catalogue


def _typed(default: str, type_oid: int) -> str:
    """A default with the cast that PostgreSQL shows behind a text constant; the constant alone for a number."""
    tokens = sqlite_tokens(default)
    facts = TYPES[type_oid]
    if len(tokens) != 1 or tokens[0].kind != "string" or facts.category in "NB":
        return default
    return f"{default}::{facts.name if type_oid == BPCHAR else facts.shown}"


def _bracketed(expression: str) -> str:
    """An expression as a column of an index: in brackets unless it is a call."""
    return expression if call_name(expression) is not None else f"({expression})"


def _array(numbers: Sequence[int]) -> str:
    return "{" + ",".join(str(number) for number in numbers) + "}"


def _vector(numbers: Sequence[int]) -> str:
    return " ".join(str(number) for number in numbers)


def _fixed_rows(database: str, roles: RoleCatalogue) -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = {name: [] for name in TABLES}
    schemas = ((CATALOG, "pg_catalog"), (PUBLIC, "public"), (INFORMATION, "information_schema"))
    rows["pg_namespace"] = [system_row("pg_namespace", oid=oid, nspname=name, nspowner=OWNER) for oid, name in schemas]
    rows["information_schema.schemata"] = [(database, name, "") for _, name in schemas]
    rows["pg_type"] = [_type_row(facts) for facts in TYPES.values()]
    methods = ((HEAP, "heap", "t"), (BTREE, "btree", "i"))
    rows["pg_am"] = [system_row("pg_am", oid=oid, amname=name, amtype=kind) for oid, name, kind in methods]
    collations = ((100, "default", "d", None), (950, "C", "c", "C"))
    rows["pg_collation"] = [
        system_row("pg_collation", oid=oid, collname=name, collnamespace=CATALOG, collowner=OWNER, collprovider=provider,
                   collcollate=locale, collctype=locale)
        for oid, name, provider, locale in collations
    ]  # fmt: skip
    rows["pg_tablespace"] = [system_row("pg_tablespace", oid=DEFAULT_SPACE, spcname="pg_default", spcowner=OWNER)]
    rows["pg_database"] = [
        system_row("pg_database", oid=object_ids([database])[database], datname=database, datdba=OWNER, encoding=6, datlocprovider="c",
                   dattablespace=DEFAULT_SPACE, datcollate="C", datctype="C", datacl=roles.database_acl())
    ]  # fmt: skip
    return rows


def _type_row(facts: TypeFacts) -> Row:
    return system_row(
        "pg_type", oid=facts.oid, typname=facts.name, typnamespace=CATALOG, typowner=OWNER, typlen=facts.length, typbyval=facts.is_by_value,
        typtype="p" if facts.category == "P" else "b", typcategory=facts.category, typispreferred=facts.preferred, typelem=facts.element,
        typarray=facts.array, typalign=facts.alignment, typstorage=facts.storage, typcollation=facts.collation,
        typinput=facts.function("in"), typoutput=facts.function("out"), typreceive=facts.function("recv"), typsend=facts.function("send"),
    )  # fmt: skip


class _Builder:
    """Adds the rows of each relation in turn."""

    def __init__(self, facts: Sequence[RelationFacts], roles: RoleCatalogue, database: str) -> None:
        self._database = database
        self._referenced_tables = {key.table.lower() for relation in facts for key in relation.foreign_keys}
        self._by_name = {relation.name.lower(): relation for relation in facts}
        self.catalogue = Catalogue(_fixed_rows(database, roles), roles)
        self._rows = self.catalogue.rows
        names = [relation.name for relation in facts]
        self._rows.update(roles.rows(names))
        indexes = [index_name(relation, index) for relation in facts for index in relation.indexes]
        implicit = [key_name(relation) for relation in facts if relation.rowid_column is not None]
        used = {*names, *indexes, *implicit}
        self._sequences = {relation.name: _sequence_name(relation, used) for relation in facts if relation.rowid_column is not None}
        self._oids = object_ids([*dict.fromkeys([*names, *indexes, *implicit, *self._sequences.values()])])
        constraints = [f"{relation.name} {kind} {columns}" for relation in facts for kind, columns in _constraint_keys(relation)]
        defaults = [
            f"{relation.name} d {column.name}" for relation in facts for column in relation.columns if self._default(relation, column)
        ]
        triggers = [f"{relation.name} t {name}" for relation in facts for name, _ in relation.triggers]
        rules = [f"{relation.name} r _RETURN" for relation in facts if relation.kind == "v"]
        self._constraints = object_ids([*constraints, *defaults, *triggers, *rules])
        self.catalogue.relations = {name: self._oids[name] for name in self._oids}
        self.catalogue.names = {oid: quoted(name) for name, oid in self._oids.items()}

    def _default(self, relation: RelationFacts, column: ColumnFacts) -> str | None:
        """The expression in pg_attrdef: a default, the expression of a generated column, or the sequence of a key."""
        if column.name == relation.rowid_column:
            return f"nextval('{quoted(self._sequences[relation.name])}'::regclass)"
        if column.generated:
            return relation.definition.generated.get(column.name.lower())
        return column.default if column.default is None else _typed(column.default, self._declared(relation, column)[0])

    def _add_row(self, table: str, **values: Value) -> None:
        self._rows[table].append(system_row(table, **values))

    def add(self, relation: RelationFacts) -> None:
        oid = self._oids[relation.name]
        has_index = bool(relation.indexes) or relation.rowid_column is not None
        # PostgreSQL enforces a foreign key by triggers of both tables.
        has_triggers = bool(relation.triggers or relation.foreign_keys) or relation.name.lower() in self._referenced_tables
        is_view, owner = relation.kind == "v", self.catalogue.roles.owner(relation.name)
        self._add_class(
            oid, relation.name, relation.kind, len(relation.columns), relowner=self.catalogue.roles.owner_oid(relation.name),
            relacl=self.catalogue.roles.acl(relation.name), relhasindex=has_index, relchecks=len(relation.definition.checks),
            relhasrules=is_view, relhastriggers=has_triggers, relreplident="n" if is_view else "d",
            relam=0 if is_view else HEAP,
        )  # fmt: skip
        table_type = "VIEW" if is_view else "BASE TABLE"
        self._rows["information_schema.tables"].append(
            (self._database, "public", relation.name, table_type, "NO" if is_view else "YES", "NO")
        )
        if is_view:
            self._add_view(relation, oid, owner)
        else:
            self.catalogue.stored[oid] = relation.name
            self._add_row("pg_tables", schemaname="public", tablename=relation.name, tableowner=owner, hasindexes=has_index,
                          hastriggers=has_triggers)  # fmt: skip
        for column in relation.columns:
            self._add_column(relation, oid, column)
        if relation.rowid_column is not None:
            number = next(column.number for column in relation.columns if column.name == relation.rowid_column)
            self._add_index(relation, IndexFacts("", True, "pk", ((number, False),), IndexDefinition()))
            self._add_sequence(relation, number)
        for index in relation.indexes:
            self._add_index(relation, index)
        for number, key in enumerate(relation.foreign_keys):
            self._add_foreign_key(relation, key, number)
        self._add_checks(relation)
        for name, sql in relation.triggers:
            trigger = self._constraints[f"{relation.name} t {name}"]
            self._add_row("pg_trigger", oid=trigger, tgrelid=oid, tgname=name, tgtype=trigger_type(sql))
            self.catalogue.definitions[trigger] = trigger_text(sql)

    def _add_class(self, oid: int, name: str, kind: str, columns: int, **values: Value) -> None:
        values = {"relowner": OWNER, "relfilenode": 0 if kind == "v" else oid} | values
        self._add_row("pg_class", oid=oid, relname=name, relnamespace=PUBLIC, relkind=kind, relnatts=columns, **values)

    def _add_view(self, view: RelationFacts, oid: int, owner: str) -> None:
        text = view_text(view.sql)
        shown = None if text is None else f" {text};"
        if shown is not None:
            self.catalogue.definitions[oid] = shown
        self._add_row("pg_views", schemaname="public", viewname=view.name, viewowner=owner, definition=shown)
        rule = self._constraints[f"{view.name} r _RETURN"]
        self._add_row("pg_rewrite", oid=rule, rulename="_RETURN", ev_class=oid, ev_type="1", ev_enabled="O", is_instead=1)

    def _add_attribute(self, relation: int, number: int, name: str, type_oid: int, modifier: int = -1, **values: Value) -> None:
        facts = TYPES.get(type_oid)
        if facts is not None:
            of_type: dict[str, Value] = {
                "attlen": facts.length, "attndims": int(facts.category == "A"), "attbyval": facts.is_by_value, "attalign": facts.alignment,
                "attstorage": facts.storage, "attcollation": facts.collation,
            }  # fmt: skip
            values = of_type | values
        self._add_row("pg_attribute", attrelid=relation, attname=name, atttypid=type_oid, attnum=number, atttypmod=modifier, **values)

    def _declared(self, relation: RelationFacts, column: ColumnFacts) -> tuple[int, int]:
        """The type and modifier of a column."""
        is_key = column.name == relation.rowid_column
        return declared_type(relation.definition.widths.get(column.name.lower(), column.declared) if is_key else column.declared)

    def _add_column(self, relation: RelationFacts, oid: int, column: ColumnFacts) -> None:
        type_oid, modifier = self._declared(relation, column)
        type_facts = TYPES[type_oid]
        identity = "d" if column.name == relation.rowid_column else ""
        expression = self._default(relation, column)
        self._add_attribute(
            oid, column.number, column.name, type_oid, modifier, attnotnull=column.not_null,
            atthasdef=expression is not None or column.generated != "", attidentity=identity, attgenerated=column.generated,
        )  # fmt: skip
        if expression is not None:
            default_oid = self._constraints[f"{relation.name} d {column.name}"]
            self._add_row("pg_attrdef", oid=default_oid, adrelid=oid, adnum=column.number, adbin=expression)
        default, generation = (None, expression) if column.generated else (expression, None)
        size = modifier - 4 if modifier >= 0 else None
        is_text, is_number = type_oid in (1042, 1043), type_oid == 1700
        self._rows["information_schema.columns"].append(
            (self._database, "public", relation.name, column.name, column.number, default, "NO" if column.not_null else "YES",
             "ARRAY" if type_facts.category == "A" else format_type(type_oid, -1), size if is_text else None,
             _precision(type_oid) if not is_number else size and size >> 16, size & 0xFFFF if is_number and size is not None else
             0 if type_oid in _BITS and type_oid < 100 else None, 6 if type_oid in (1083, 1114, 1184) else 0 if type_oid == 1082 else None,
             self._database, "pg_catalog", type_facts.name, "YES" if identity else "NO", "ALWAYS" if column.generated else "NEVER",
             generation, "NO" if relation.kind == "v" else "YES")
        )  # fmt: skip

    def _add_sequence(self, relation: RelationFacts, column: int) -> None:
        """The sequence that PostgreSQL has for SERIAL. SQLAlchemy and Alembic recognise a generated key by it."""
        name, owner = self._sequences[relation.name], self.catalogue.roles.owner(relation.name)
        oid, table = self._oids[name], self._oids[relation.name]
        self._add_class(oid, name, "S", len(_SEQUENCE_COLUMNS), relowner=self.catalogue.roles.owner_oid(relation.name))
        for number, (column_name, type_oid) in enumerate(_SEQUENCE_COLUMNS, start=1):
            self._add_attribute(oid, number, column_name, type_oid, attnotnull=1)
        kind = self._declared(relation, relation.columns[column - 1])[0]
        largest = (1 << _BITS.get(kind, 64) - 1) - 1
        self._add_row("pg_sequence", seqrelid=oid, seqtypid=kind, seqstart=1, seqincrement=1, seqmax=largest, seqmin=1, seqcache=1)
        self._add_row("pg_sequences", schemaname="public", sequencename=name, sequenceowner=owner, data_type=format_type(kind, None),
                      start_value=1, min_value=1, max_value=largest, increment_by=1, cache_size=1, last_value=None)  # fmt: skip
        pg_class = SYSTEM_OIDS["pg_class"]
        self._add_row("pg_depend", classid=pg_class, objid=oid, refclassid=pg_class, refobjid=table, refobjsubid=column, deptype="a")

    def _add_index(self, relation: RelationFacts, index: IndexFacts) -> None:
        name = index_name(relation, index)
        oid, table = self._oids[name], self._oids[relation.name]
        self._add_class(oid, name, "i", len(index.columns), relam=BTREE, relowner=self.catalogue.roles.owner_oid(relation.name))
        if index.name:
            self.catalogue.stored[oid] = index.name
        self.catalogue.indexes.setdefault(table, []).append(oid)
        numbers = [number for number, _ in index.columns]
        columns = column_names(relation, index)
        expressions = index.definition.expressions
        texts = tuple(
            quoted(columns[position]) if number else _bracketed(expressions[position]) if position < len(expressions) else "?"
            for position, number in enumerate(numbers)
        )
        spelled = ", ".join(text + (" DESC" if descends else "") for text, (_, descends) in zip(texts, index.columns, strict=True))
        unique = "UNIQUE " if index.unique else ""
        created = f"CREATE {unique}INDEX {quoted(name)} ON public.{quoted(relation.name)} USING btree ({spelled})"
        condition = index.definition.predicate
        self.catalogue.index_texts[oid] = (created, condition, texts)
        self._add_row("pg_indexes", schemaname="public", tablename=relation.name, indexname=name,
                      indexdef=created + (f" WHERE ({condition})" if condition else ""))  # fmt: skip
        self._add_index_columns(relation, oid, numbers, expression_names(columns, texts))
        # Bit 1: descending; bit 2: NULLs first, which is PostgreSQL's order for a descending column.
        options = [3 if descends else 0 for _, descends in index.columns]
        self._add_row(
            "pg_index", indexrelid=oid, indrelid=table, indnatts=len(numbers), indnkeyatts=len(numbers), indisunique=index.unique,
            indisprimary=index.origin == "pk", indkey=_vector(numbers), indcollation=_vector([0] * len(numbers)),
            indclass=_vector([0] * len(numbers)), indoption=_vector(options), indexprs=", ".join(texts) if 0 in numbers else None,
            indpred=condition,
        )  # fmt: skip
        if index.origin != "c":
            kind, word = ("p", "PRIMARY KEY") if index.origin == "pk" else ("u", "UNIQUE")
            self._add_constraint(relation, kind, name, columns, f"{word} ({listed(columns)})", index_oid=oid)

    def _add_index_columns(self, relation: RelationFacts, index: int, numbers: Sequence[int], names: Sequence[str]) -> None:
        for place, (number, name) in enumerate(zip(numbers, names, strict=True), start=1):
            # The type of an expression is not known.
            kind = self._declared(relation, relation.columns[number - 1]) if number else (0, -1)
            self._add_attribute(index, place, name, *kind)

    def _add_constraint(
        self,
        relation: RelationFacts,
        kind: str,
        name: str,
        columns: Sequence[str],
        text: str,
        *,
        index_oid: int = 0,
        key: ForeignKeyFacts | None = None,
        key_number: int = 0,
        expression: str | None = None,
    ) -> None:
        identity = (str(key_number), *columns) if kind == "f" else tuple(columns) if kind != "c" else (name,)
        oid = self._constraints[f"{relation.name} {kind} {identity}"]
        numbers = [_number(relation, column) for column in columns]
        deferred = kind == "f" and tuple(column.lower() for column in columns) in relation.definition.deferred
        other, referenced = (0, None) if key is None else self._referenced(key)
        actions: dict[str, Value] = {}
        if key is not None:
            actions = {
                "confupdtype": _ACTIONS.get(key.on_update, "a"),
                "confdeltype": _ACTIONS.get(key.on_delete, "a"),
                "confmatchtype": "s",
            }
        self._add_row(
            "pg_constraint", oid=oid, conname=name, connamespace=PUBLIC, contype=kind, condeferrable=deferred, condeferred=deferred,
            conrelid=self._oids[relation.name], conindid=index_oid, confrelid=other, connoinherit=kind != "c", conkey=_array(numbers),
            confkey=referenced, conbin=expression, **actions,
        )  # fmt: skip
        self.catalogue.constraint_texts[oid] = text + (" DEFERRABLE INITIALLY DEFERRED" if deferred else "")
        place = (self._database, "public", name, self._database, "public", relation.name)
        waits = "YES" if deferred else "NO"
        self._rows["information_schema.table_constraints"].append((*place, _CONSTRAINT_TYPES[kind], waits, waits, "YES"))
        if kind != "c":
            referred = self._places_in_key(key)
            usage = [(*place, column, number, referred.get(number)) for number, column in enumerate(columns, start=1)]
            self._rows["information_schema.key_column_usage"] += usage

    def _referenced(self, key: ForeignKeyFacts) -> tuple[int, str | None]:
        other = self._by_name.get(key.table.lower())
        if other is None:
            return 0, None  # SQLite allows a reference to a table that does not exist yet.
        return self._oids[other.name], _array([_number(other, column) for column in key.referenced or other.key])

    def _places_in_key(self, key: ForeignKeyFacts | None) -> dict[int, int]:
        """The positions of a foreign key's columns in the key that they refer to, by their positions in the foreign key, from 1."""
        found = None if key is None else self._referenced_key(key)
        return {} if found is None else dict(enumerate(found[1], start=1))

    def _referenced_key(self, key: ForeignKeyFacts) -> tuple[str, list[int]] | None:
        """(the index of the key to which a foreign key refers, the position in it of each referenced column); None without one."""
        other = self._by_name.get(key.table.lower())
        if other is None:
            return None
        referenced = [name.lower() for name in key.referenced or other.key]
        unique = [
            (index_name(other, one), column_names(other, one)) for one in other.indexes if one.unique and not one.definition.predicate
        ]
        for index, names in [(key_name(other), list(other.key)), *unique]:
            places = {name.lower(): place for place, name in enumerate(names, start=1)}
            if places.keys() == set(referenced):
                return index, [places[name] for name in referenced]
        return None

    def _add_foreign_key(self, relation: RelationFacts, key: ForeignKeyFacts, number: int) -> None:
        other = self._by_name.get(key.table.lower())
        referenced = key.referenced or (other.key if other is not None else ())
        name = foreign_key_name(relation, key)
        target = other.name if other is not None else key.table
        text = f"FOREIGN KEY ({listed(key.columns)}) REFERENCES {quoted(target)}({listed(referenced)})"
        for word, action in (("UPDATE", key.on_update), ("DELETE", key.on_delete)):
            text += f" ON {word} {action}" if action != "NO ACTION" else ""
        found = self._referenced_key(key)
        index_oid = self._oids.get(found[0], 0) if found is not None else 0
        self._add_constraint(relation, "f", name, key.columns, text, index_oid=index_oid, key=key, key_number=number)

    def _add_checks(self, relation: RelationFacts) -> None:
        for name, check in check_names(relation):
            columns = (check.column,) if check.column is not None else ()
            self._add_constraint(relation, "c", name, columns, f"CHECK ({check.expression})", expression=check.expression)


_ACTIONS = {"NO ACTION": "a", "RESTRICT": "r", "CASCADE": "c", "SET NULL": "n", "SET DEFAULT": "d"}
_CONSTRAINT_TYPES = {"p": "PRIMARY KEY", "u": "UNIQUE", "f": "FOREIGN KEY", "c": "CHECK"}
_BITS = {20: 64, 21: 16, 23: 32, 700: 24, 701: 53}


def _sequence_name(relation: RelationFacts, used: set[str]) -> str:
    name = plain = f"{relation.name}_{relation.rowid_column}_seq"
    number = 0
    while name in used:
        number += 1
        name = f"{plain}{number}"
    used.add(name)
    return name


def _precision(oid: int) -> int | None:
    return _BITS.get(oid)


def _constraint_keys(relation: RelationFacts) -> list[tuple[str, tuple[str, ...]]]:
    keys: list[tuple[str, tuple[str, ...]]] = [("f", (str(number), *key.columns)) for number, key in enumerate(relation.foreign_keys)]
    if relation.key:
        keys.append(("p", relation.key))
    keys += [("u", tuple(column_names(relation, index))) for index in relation.indexes if index.origin == "u"]
    return keys + [("c", (name,)) for name, _ in check_names(relation)]


def _number(relation: RelationFacts, column: str) -> int:
    return next((each.number for each in relation.columns if each.name.lower() == column.lower()), 0)


def relation_oid(catalogue: Catalogue, name: str) -> int | None:
    """The oid of a relation by its name: ``t``, ``public.t``, ``"T"``, ``pg_catalog.pg_class``; None if it does not exist."""
    parts = name_parts(name)
    if len(parts) > 1 and parts[0] not in ("public", "pg_catalog"):
        return None
    relation_name = parts[-1]
    if relation_name.isdigit():
        return int(relation_name)
    if parts[0] != "public" and relation_name in SYSTEM_OIDS:
        return SYSTEM_OIDS[relation_name]
    if parts[0] == "pg_catalog":
        return None
    oid = catalogue.relations.get(relation_name)
    # SQLite's names are not case-sensitive: the name account also refers to a table that was created as "Account".
    return oid if oid is not None else {relation.lower(): oid for relation, oid in catalogue.relations.items()}.get(relation_name.lower())
