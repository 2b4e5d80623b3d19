"""The names that PostgreSQL gives to constraints and their indexes, from the facts of a schema. Pure.

Source: PostgreSQL 15, `ChooseConstraintName` and `ChooseIndexName`.
"""

from __future__ import annotations

from triplicate.sql.catalogue.schema_facts import ForeignKeyFacts, IndexFacts, RelationFacts
from triplicate.sql.catalogue.table_definitions import CheckConstraint
from triplicate.sql.core.lexer import identifier, sqlite_tokens


def key_name(relation: RelationFacts) -> str:
    """The name of the primary key."""
    return relation.definition.names.get(("p", tuple(name.lower() for name in relation.key)), f"{relation.name}_pkey")


def index_name(relation: RelationFacts, index: IndexFacts) -> str:
    """The name of an index. SQLite numbers the indexes of constraints; PostgreSQL names them after the constraint."""
    if index.name and not index.name.startswith("sqlite_"):
        return index.name
    if index.origin == "pk":
        return key_name(relation)
    columns = column_names(relation, index)
    default = f"{relation.name}_{'_'.join(columns)}_key"
    return relation.definition.names.get(("u", tuple(name.lower() for name in columns)), default)


def foreign_key_name(relation: RelationFacts, key: ForeignKeyFacts) -> str:
    """The name of a foreign key."""
    default = f"{relation.name}_{'_'.join(key.columns)}_fkey"
    return relation.definition.names.get(("f", tuple(column.lower() for column in key.columns)), default)


def check_names(relation: RelationFacts) -> list[tuple[str, CheckConstraint]]:
    """The CHECKs with their names. One without a name is named after its only column; a number follows where the name is taken."""
    checks = relation.definition.checks
    used = {check.name for check in checks if check.name is not None}
    names: list[tuple[str, CheckConstraint]] = []
    for check in checks:
        name = check.name
        if name is None:
            columns = _columns_in(relation, check.expression)
            plain = f"{relation.name}_{columns[0]}_check" if len(columns) == 1 else f"{relation.name}_check"
            name = next(each for each in (plain, *(f"{plain}{number}" for number in range(1, len(checks) + 1))) if each not in used)
            used.add(name)
        names.append((name, check))
    return names


def column_names(relation: RelationFacts, index: IndexFacts) -> list[str]:
    """The columns of an index; an empty text for an expression."""
    return [relation.columns[number - 1].name if number else "" for number, _ in index.columns]


def _columns_in(relation: RelationFacts, expression: str) -> list[str]:
    columns = {column.name.lower(): column.name for column in relation.columns}
    names = [identifier(token).lower() for token in sqlite_tokens(expression) if token.kind in ("word", "quoted")]
    return list(dict.fromkeys(columns[name] for name in names if name in columns))
