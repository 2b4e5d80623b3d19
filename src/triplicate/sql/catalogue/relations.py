"""The rows of each catalogue table, from the facts of a schema. Pure.

The tables have the columns of PostgreSQL 15 that client libraries query. A query of any other column fails (42703) and gets no invented
value. Tables without a counterpart here (enumerations, ranges, comments, inheritance) exist and are empty. Object ids depend on names
alone: they are the same on every node, in every session, and after a restart.
Source: PostgreSQL 15 documentation, "System Catalogs" and "The Information Schema".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from triplicate.errors import SqlError
from triplicate.sql.catalogue.constraint_names import check_names, column_names, foreign_key_name, index_name, key_name
from triplicate.sql.catalogue.live_tables import LIVE_TABLES
from triplicate.sql.catalogue.object_ids import object_ids
from triplicate.sql.catalogue.role_relations import ADMINISTRATOR_OID, ROLE_TABLES, RoleCatalogue
from triplicate.sql.catalogue.schema_facts import ColumnFacts, ForeignKeyFacts, IndexFacts, RelationFacts
from triplicate.sql.catalogue.table_definitions import IndexDefinition
from triplicate.sql.catalogue.type_names import TYPES, declared_type, format_type
from triplicate.sql.core.access_rights import NOTHING_STORED, AccessRights
from triplicate.sql.core.interface import Row

CATALOG, PUBLIC, INFORMATION = 11, 2200, 13000
OWNER = ADMINISTRATOR_OID
HEAP, BTREE = 2, 403
CATALOG_OIDS = {
    "pg_type": 1247, "pg_attribute": 1249, "pg_class": 1259, "pg_database": 1262, "pg_tablespace": 1213, "pg_am": 2601,
    "pg_attrdef": 2604, "pg_constraint": 2606, "pg_depend": 2608, "pg_description": 2609, "pg_index": 2610, "pg_inherits": 2611,
    "pg_namespace": 2615, "pg_opclass": 2616, "pg_sequence": 2224, "pg_collation": 3456, "pg_enum": 3501, "pg_range": 3541,
}  # fmt: skip

TABLES: dict[str, str] = {
    "pg_namespace": "oid oid, nspname name, nspowner oid",
    "pg_type": "oid oid, typname name, typnamespace oid, typowner oid, typlen integer, typbyval boolean, typtype char1, typcategory char1,"
    " typispreferred boolean, typisdefined boolean, typdelim char1, typrelid oid, typelem oid, typarray oid, typnotnull boolean,"
    " typbasetype oid, typtypmod integer, typndims integer, typcollation oid, typdefault text",
    "pg_class": "oid oid, relname name, relnamespace oid, reltype oid, relowner oid, relam oid, reltablespace oid, reltuples real,"
    " relpages integer, relhasindex boolean, relisshared boolean, relpersistence char1, relkind char1, relnatts integer,"
    " relchecks integer, relhasrules boolean, relhastriggers boolean, relhassubclass boolean, relrowsecurity boolean,"
    " relforcerowsecurity boolean, relispopulated boolean, relreplident char1, relispartition boolean, reloptions text[], relacl text[]",
    "pg_attribute": "attrelid oid, attname name, atttypid oid, attlen integer, attnum integer, attndims integer, atttypmod integer,"
    " attnotnull boolean, atthasdef boolean, attidentity char1, attgenerated char1, attisdropped boolean, attislocal boolean,"
    " attcollation oid, attacl text[]",
    "pg_attrdef": "oid oid, adrelid oid, adnum integer, adbin text",
    "pg_index": "indexrelid oid, indrelid oid, indnatts integer, indnkeyatts integer, indisunique boolean, indnullsnotdistinct boolean,"
    " indisprimary boolean, indisexclusion boolean, indimmediate boolean, indisclustered boolean, indisvalid boolean,"
    " indisready boolean, indislive boolean, indkey int2vector, indclass int2vector, indoption int2vector, indexprs text, indpred text",
    "pg_constraint": "oid oid, conname name, connamespace oid, contype char1, condeferrable boolean, condeferred boolean,"
    " convalidated boolean, conrelid oid, contypid oid, conindid oid, confrelid oid, confupdtype char1, confdeltype char1,"
    " confmatchtype char1, conislocal boolean, conkey int2[], confkey int2[], conbin text",
    "pg_database": "oid oid, datname name, datdba oid, encoding integer, datistemplate boolean, datallowconn boolean,"
    " datconnlimit integer, datcollate text, datctype text, datacl text[]",
    "pg_am": "oid oid, amname name, amtype char1",
    "pg_collation": "oid oid, collname name, collnamespace oid, collcollate text, collctype text",
    "pg_tablespace": "oid oid, spcname name, spcowner oid",
    "pg_description": "objoid oid, classoid oid, objsubid integer, description text",
    "pg_enum": "oid oid, enumtypid oid, enumsortorder real, enumlabel name",
    "pg_range": "rngtypid oid, rngsubtype oid, rngmultitypid oid",
    "pg_sequence": "seqrelid oid, seqtypid oid, seqstart bigint, seqincrement bigint, seqmax bigint, seqmin bigint, seqcache bigint,"
    " seqcycle boolean",
    "pg_inherits": "inhrelid oid, inhparent oid, inhseqno integer",
    "pg_opclass": "oid oid, opcmethod oid, opcname name, opcnamespace oid, opcintype oid, opcdefault boolean",
    "pg_depend": "classid oid, objid oid, objsubid integer, refclassid oid, refobjid oid, refobjsubid integer, deptype char1",
    "pg_cursors": "name text, statement text, is_holdable boolean, is_binary boolean, is_scrollable boolean",
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
    **ROLE_TABLES,
    **LIVE_TABLES,
}
"""Maps the name of each catalogue table to its columns, each with its type."""


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
    """Maps the oid of a constraint to its definition."""
    index_texts: dict[int, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    """Maps the oid of an index to (CREATE INDEX, the text of each key column)."""


def build(facts: Sequence[RelationFacts], database: str, access: AccessRights = NOTHING_STORED) -> Catalogue:
    """The catalogue of one schema.

    Args:
        facts: of all tables and views. database: its name. access: its roles and rights.
    """
    builder = _Builder(facts, RoleCatalogue(access, database), database)
    for relation in facts:
        builder.add(relation)
    return builder.catalogue


def _quoted(name: str) -> str:
    plain = name.isascii() and name == name.lower() and name.replace("_", "a").isalnum() and not name[0].isdigit()
    return name if plain else '"' + name.replace('"', '""') + '"'


def _listed(names: Sequence[str]) -> str:
    return ", ".join(_quoted(name) for name in names)


def _array(numbers: Sequence[int]) -> str:
    return "{" + ",".join(str(number) for number in numbers) + "}"


def _vector(numbers: Sequence[int]) -> str:
    return " ".join(str(number) for number in numbers)


def _fixed_rows(database: str, roles: RoleCatalogue) -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = {name: [] for name in TABLES}
    rows["pg_namespace"] = [(CATALOG, "pg_catalog", OWNER), (PUBLIC, "public", OWNER), (INFORMATION, "information_schema", OWNER)]
    rows["information_schema.schemata"] = [(database, name, "") for _, name, _ in rows["pg_namespace"]]
    rows["pg_type"] = [
        (one.oid, one.name, CATALOG, OWNER, one.length, one.length in (1, 2, 4, 8), "b", one.category, one.preferred, 1, ",", 0,
         one.element, one.array, 0, 0, -1, 0, one.collation, None)
        for one in TYPES.values()
    ]  # fmt: skip
    rows["pg_am"] = [(HEAP, "heap", "t"), (BTREE, "btree", "i")]
    rows["pg_collation"] = [(100, "default", CATALOG, None, None), (950, "C", CATALOG, "C", "C")]
    rows["pg_tablespace"] = [(1663, "pg_default", OWNER)]
    rows["pg_database"] = [(object_ids([database])[database], database, OWNER, 6, 0, 1, -1, "C", "C", roles.database_acl())]
    return rows


class _Builder:
    """Adds the rows of each relation in turn."""

    def __init__(self, facts: Sequence[RelationFacts], roles: RoleCatalogue, database: str) -> None:
        self._database = database
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
        self._constraints = object_ids([*constraints, *defaults])
        self.catalogue.relations = {name: self._oids[name] for name in self._oids}
        self.catalogue.names = {oid: _quoted(name) for name, oid in self._oids.items()}

    def _default(self, relation: RelationFacts, column: ColumnFacts) -> str | None:
        """The expression in pg_attrdef: a default, the expression of a generated column, or the sequence of a key."""
        if column.name == relation.rowid_column:
            return f"nextval('{_quoted(self._sequences[relation.name])}'::regclass)"
        return relation.definition.generated.get(column.name.lower()) if column.generated else column.default

    def add(self, relation: RelationFacts) -> None:
        oid = self._oids[relation.name]
        has_index = bool(relation.indexes) or relation.rowid_column is not None
        checks = len(relation.definition.checks)
        owner, acl = self.catalogue.roles.owner_oid(relation.name), self.catalogue.roles.acl(relation.name)
        self._add_class(oid, relation.name, relation.kind, len(relation.columns), owner, acl, has_index=has_index, checks=checks)
        table_type = "VIEW" if relation.kind == "v" else "BASE TABLE"
        self._rows["information_schema.tables"].append(
            (self._database, "public", relation.name, table_type, "NO" if relation.kind == "v" else "YES", "NO")
        )
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

    def _add_class(
        self,
        oid: int,
        name: str,
        kind: str,
        columns: int,
        owner: int = OWNER,
        acl: str | None = None,
        *,
        has_index: bool = False,
        checks: int = 0,
    ) -> None:
        method = {"r": HEAP, "i": BTREE}.get(kind, 0)
        self._rows["pg_class"].append(
            (oid, name, PUBLIC, 0, owner, method, 0, -1.0, 0, has_index, 0, "p", kind, columns, checks, kind == "v", 0, 0, 0, 0, 1, "d", 0,
             None, acl)
        )  # fmt: skip

    def _add_column(self, relation: RelationFacts, oid: int, column: ColumnFacts) -> None:
        is_key = column.name == relation.rowid_column
        type_oid, modifier = declared_type(
            relation.definition.widths.get(column.name.lower(), column.declared) if is_key else column.declared
        )
        type_facts = TYPES[type_oid]
        identity = "d" if is_key else ""
        expression = self._default(relation, column)
        has_default = expression is not None or column.generated != ""
        self._rows["pg_attribute"].append(
            (oid, column.name, type_oid, type_facts.length, column.number, int(type_facts.category == "A"), modifier, column.not_null,
             has_default, identity, column.generated, 0, 1, type_facts.collation, None)
        )  # fmt: skip
        if expression is not None:
            self._rows["pg_attrdef"].append((self._constraints[f"{relation.name} d {column.name}"], oid, column.number, expression))
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
        oid, table = self._oids[self._sequences[relation.name]], self._oids[relation.name]
        self._add_class(oid, self._sequences[relation.name], "S", 3)
        pg_class = CATALOG_OIDS["pg_class"]
        self._rows["pg_depend"].append((pg_class, oid, 0, pg_class, table, column, "a"))

    def _add_index(self, relation: RelationFacts, index: IndexFacts) -> None:
        name = index_name(relation, index)
        oid, table = self._oids[name], self._oids[relation.name]
        self._add_class(oid, name, "i", len(index.columns))
        numbers = [number for number, _ in index.columns]
        columns = column_names(relation, index)
        expressions = index.definition.expressions
        texts = tuple(
            _quoted(columns[position]) if number else f"({expressions[position]})" if position < len(expressions) else "?"
            for position, number in enumerate(numbers)
        )
        spelled = ", ".join(text + (" DESC" if descends else "") for text, (_, descends) in zip(texts, index.columns, strict=True))
        unique = "UNIQUE " if index.unique else ""
        where = f" WHERE ({index.definition.predicate})" if index.definition.predicate else ""
        created = f"CREATE {unique}INDEX {_quoted(name)} ON public.{_quoted(relation.name)} USING btree ({spelled}){where}"
        self.catalogue.index_texts[oid] = (created, texts)
        # Bit 1: descending; bit 2: NULLs first, which is PostgreSQL's order for a descending column.
        options = [3 if descends else 0 for _, descends in index.columns]
        self._rows["pg_index"].append(
            (oid, table, len(numbers), len(numbers), index.unique, 0, index.origin == "pk", 0, 1, 0, 1, 1, 1, _vector(numbers),
             _vector([0] * len(numbers)), _vector(options), ", ".join(texts) if 0 in numbers else None, index.definition.predicate)
        )  # fmt: skip
        if index.origin != "c":
            kind, word = ("p", "PRIMARY KEY") if index.origin == "pk" else ("u", "UNIQUE")
            self._add_constraint(relation, kind, name, columns, f"{word} ({_listed(columns)})", index_oid=oid)

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
        actions = ("a", "a", "s") if key is None else (_ACTIONS.get(key.on_update, "a"), _ACTIONS.get(key.on_delete, "a"), "s")
        self._rows["pg_constraint"].append(
            (oid, name, PUBLIC, kind, deferred, deferred, 1, self._oids[relation.name], 0, index_oid, other,
             *(actions if key is not None else (" ", " ", " ")), 1, _array(numbers), referenced, expression)
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
        other = self._by_name.get(key.table.lower()) if key is not None else None
        if key is None or other is None:
            return {}
        referenced = [name.lower() for name in key.referenced or other.key]
        unique = [column_names(other, index) for index in other.indexes if index.unique and index.definition.predicate is None]
        for names in [list(other.key), *unique]:
            places = {name.lower(): place for place, name in enumerate(names, start=1)}
            if places.keys() == set(referenced):
                return {number: places[name] for number, name in enumerate(referenced, start=1)}
        return {}

    def _add_foreign_key(self, relation: RelationFacts, key: ForeignKeyFacts, number: int) -> None:
        other = self._by_name.get(key.table.lower())
        referenced = key.referenced or (other.key if other is not None else ())
        name = foreign_key_name(relation, key)
        target = other.name if other is not None else key.table
        text = f"FOREIGN KEY ({_listed(key.columns)}) REFERENCES {_quoted(target)}({_listed(referenced)})"
        for word, action in (("UPDATE", key.on_update), ("DELETE", key.on_delete)):
            text += f" ON {word} {action}" if action != "NO ACTION" else ""
        self._add_constraint(relation, "f", name, key.columns, text, key=key, key_number=number)

    def _add_checks(self, relation: RelationFacts) -> None:
        for name, check in check_names(relation):
            columns = (check.column,) if check.column is not None else ()
            self._add_constraint(relation, "c", name, columns, f"CHECK (({check.expression}))", expression=check.expression)


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
    parts = _parts(name)
    if len(parts) > 1 and parts[0] not in ("public", "pg_catalog"):
        return None
    relation_name = parts[-1]
    if relation_name.isdigit():
        return int(relation_name)
    if parts[0] != "public" and relation_name in CATALOG_OIDS:
        return CATALOG_OIDS[relation_name]
    if parts[0] == "pg_catalog":
        return None
    oid = catalogue.relations.get(relation_name)
    # SQLite's names are not case-sensitive: the name account also refers to a table that was created as "Account".
    return oid if oid is not None else {relation.lower(): oid for relation, oid in catalogue.relations.items()}.get(relation_name.lower())


def _parts(name: str) -> list[str]:
    parts: list[str] = []
    rest = name.strip()
    while rest:
        if rest[0] == '"':
            end = rest.find('"', 1)
            while end > 0 and rest[end + 1 : end + 2] == '"':
                end = rest.find('"', end + 2)
            if end < 0:
                raise SqlError("42602", f"invalid name syntax: {name!r}")
            parts.append(rest[1:end].replace('""', '"'))
            rest = rest[end + 1 :].removeprefix(".")
        else:
            part, _, rest = rest.partition(".")
            parts.append(part.strip().lower())
    return parts or [""]
