"""The names that PostgreSQL gives to constraints and their indexes, from the facts of a schema. Pure.

Source: PostgreSQL 15, `ChooseConstraintName` and `ChooseIndexName`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, count

from triplicate.sql.catalogue.schema_facts import ForeignKeyFacts, IndexFacts, RelationFacts
from triplicate.sql.catalogue.table_definitions import CheckConstraint
from triplicate.sql.core.brackets import closing
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


def call_name(expression: str) -> str | None:
    """The function that an expression calls as a whole; None for any other expression."""
    tokens = sqlite_tokens(expression)
    is_call = len(tokens) > 2 and tokens[0].kind == "word" and tokens[1].text == "(" and closing(tokens, 1) == len(tokens) - 1
    return tokens[0].text.lower().removeprefix("triplicate_") if is_call else None


def expression_names(columns: Sequence[str], texts: Sequence[str]) -> list[str]:
    """The names of an index's columns: an expression has that of its function, else ``expr``; a number follows where the name is taken.

    Args:
        columns: as `column_names`. texts: of the columns.
    """
    names: list[str] = []
    for column, text in zip(columns, texts, strict=True):
        plain = column or call_name(text) or "expr"
        names.append(next(each for each in chain([plain], (f"{plain}{number}" for number in count(1))) if each not in names))
    return names


def _columns_in(relation: RelationFacts, expression: str) -> list[str]:
    columns = {column.name.lower(): column.name for column in relation.columns}
    names = [identifier(token).lower() for token in sqlite_tokens(expression) if token.kind in ("word", "quoted")]
    return list(dict.fromkeys(columns[name] for name in names if name in columns))
