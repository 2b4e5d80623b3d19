"""Parses and rewrites one column of CREATE TABLE or ALTER TABLE. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import Token
from triplicate.sql.pg.ddl.column_types import SERIALS, stored_type
from triplicate.sql.pg.ddl.defaults import stored_default
from triplicate.sql.pg.ddl.parts import TextEdits, Tokens, at, closing, constant_casts, past_words, refuse, type_end
from triplicate.sql.pg.ddl.stored_expressions import StoredExpressions, expression_of

_STARTS = {
    "CONSTRAINT", "NOT", "NULL", "CHECK", "DEFAULT", "GENERATED", "AS", "UNIQUE", "PRIMARY", "REFERENCES", "COLLATE", "DEFERRABLE",
    "INITIALLY", "STORAGE", "COMPRESSION",
}  # fmt: skip
_COLLATIONS = {
    "C": "BINARY",
    "POSIX": "BINARY",
    "UCS_BASIC": "BINARY",
    "DEFAULT": "BINARY",
    "BINARY": "BINARY",
    "NOCASE": "NOCASE",
    "RTRIM": "RTRIM",
}
_INTEGER_TYPES = ("INT", "INTEGER", "INT2", "INT4", "INT8", "SMALLINT", "BIGINT")


@dataclass(slots=True)
class Clause:
    """One constraint of a column, with CONSTRAINT and its name if it has one.

    Attributes:
        kind: ``NOT NULL``, ``NULL``, ``CHECK``, ``AS``, ``DEFAULT``, ``IDENTITY``, ``UNIQUE``, ``PRIMARY KEY``, ``REFERENCES`` or
            ``COLLATE``.
    """

    kind: str
    tokens: list[Token]


@dataclass(slots=True)
class ColumnParts:
    """The parts of a column definition."""

    tokens: Tokens
    type_tokens: Tokens
    clauses: list[Clause] = field(default_factory=list)
    declared: str = ""
    """The declared type in SQLite; empty for a serial or identity column."""

    @property
    def name(self) -> str:
        return self.tokens[0].name or ""

    def clause(self, kind: str) -> Clause | None:
        """The first constraint of a kind, or None."""
        return next((clause for clause in self.clauses if clause.kind == kind), None)

    @property
    def is_identity(self) -> bool:
        """Whether it is a serial column or GENERATED … AS IDENTITY."""
        is_serial = bool(self.type_tokens) and self.type_tokens[0].upper in SERIALS
        return is_serial or self.clause("IDENTITY") is not None

    @property
    def is_rowid(self) -> bool:
        """Whether a primary key of this type is an alias of the rowid, which is never NULL."""
        return self.declared.upper() == "INTEGER"

    def text_position(self) -> int:
        """The position in the text at which a constraint can be inserted."""
        return (self.type_tokens or self.tokens[:1])[-1].end


def parse_column(tokens: Tokens) -> ColumnParts:
    """Parse a column definition.

    Raises:
        SqlError: 42601 for a syntax error, 0A000 for an unsupported feature; and as `stored_type`.
    """
    if not tokens or tokens[0].name is None:
        raise SqlError("42601", f"syntax error at or near {at(tokens, 0).text!r}")
    end = _type_stop(tokens)
    column = ColumnParts(tokens, tokens[1:end])
    index = end
    while index < len(tokens):
        stop, kind = _clause(tokens, index)
        column.clauses.append(Clause(kind, list(tokens[index:stop])))
        index = stop
    if not column.is_identity and column.type_tokens:
        column.declared = stored_type(column.type_tokens)
    return column


def _type_stop(tokens: Tokens) -> int:
    """The index after the type. In SQLite a type may consist of any words."""
    index = max(1, type_end(tokens, 1)) if at(tokens, 1).upper not in _STARTS else 1
    while index < len(tokens) and tokens[index].upper not in _STARTS:
        index = closing(tokens, index) + 1 if tokens[index].text == "(" else index + 1
    return index


def _clause(tokens: Tokens, start: int) -> tuple[int, str]:
    """(index after one constraint, its kind)."""
    index = start + 2 if tokens[start].upper == "CONSTRAINT" else start
    word, after = at(tokens, index).upper, at(tokens, index + 1).upper
    if word == "NOT" and after == "NULL":
        return _conflict(tokens, index + 2), "NOT NULL"
    if word == "NULL":
        return _conflict(tokens, index + 1), "NULL"
    if word in ("CHECK", "AS"):
        if at(tokens, index + 1).text != "(":
            raise SqlError("42601", f"syntax error at or near {at(tokens, index + 1).text!r}")
        stop = closing(tokens, index + 1) + 1
        return _conflict(tokens, stop) if word == "CHECK" else stop + (at(tokens, stop).upper in ("STORED", "VIRTUAL")), word
    if word == "DEFAULT":
        return _default_stop(tokens, index + 1), "DEFAULT"
    if word == "GENERATED":
        return _generated(tokens, index)
    if word == "UNIQUE" or (word == "PRIMARY" and after == "KEY"):
        return _key_stop(tokens, index), "UNIQUE" if word == "UNIQUE" else "PRIMARY KEY"
    if word == "REFERENCES":
        return _references_stop(tokens, index), "REFERENCES"
    if word == "COLLATE":
        return index + (4 if at(tokens, index + 2).text == "." else 2), "COLLATE"
    if word in ("DEFERRABLE", "INITIALLY", "NOT"):
        raise refuse("a DEFERRABLE constraint that is not a foreign key")
    if word in ("STORAGE", "COMPRESSION"):
        raise refuse(f"{word} of a column", "leave it out")
    raise SqlError("42601", f"syntax error at or near {at(tokens, index).text!r}")


def _conflict(tokens: Tokens, index: int) -> int:
    if at(tokens, index).upper == "NO" and at(tokens, index + 1).upper == "INHERIT":
        raise refuse("NO INHERIT", "leave it out: there are no inherited tables")
    return index + 3 if at(tokens, index).upper == "ON" and at(tokens, index + 1).upper == "CONFLICT" else index


def _default_stop(tokens: Tokens, index: int) -> int:
    """The index after an expression: that of the next word that begins a constraint."""
    first = True
    while index < len(tokens):
        if not first and tokens[index].upper in _STARTS:
            break
        index = closing(tokens, index) + 1 if tokens[index].text == "(" else index + 1
        first = False
    return index


def _generated(tokens: Tokens, index: int) -> tuple[int, str]:
    stop = past_words(tokens, past_words(tokens, index + 1, "BY", "DEFAULT"), "ALWAYS")
    if at(tokens, stop).upper != "AS":
        raise SqlError("42601", f"syntax error at or near {at(tokens, stop).text!r}")
    if at(tokens, stop + 1).upper != "IDENTITY":
        end = closing(tokens, stop + 1) + 1
        return end + (at(tokens, end).upper in ("STORED", "VIRTUAL")), "AS"
    end = stop + 2
    if at(tokens, end).text == "(":
        bracket = closing(tokens, end)
        _check_sequence(tokens[end + 1 : bracket])
        end = bracket + 1
    return end, "IDENTITY"


def _check_sequence(options: Tokens) -> None:
    """Check the options of an identity column. Raises SqlError 0A000 for one that would change the sequence 1, 2, 3, …"""
    words = " ".join(token.upper or token.text for token in options)
    for name, harmless in (
        ("START", ("START 1", "START WITH 1")),
        ("INCREMENT", ("INCREMENT 1", "INCREMENT BY 1")),
        ("MINVALUE", ("NO MINVALUE", "MINVALUE 1")),
        ("MAXVALUE", ("NO MAXVALUE",)),
        ("CYCLE", ("NO CYCLE",)),
        ("SEQUENCE NAME", ()),
        ("OWNED BY", ()),
    ):
        if name in words and not any(f" {option} " in f" {words} " for option in harmless):
            raise refuse(f"{name} of an identity column", "leave the options out: the sequence begins with 1 and has the increment 1")


def _key_stop(tokens: Tokens, index: int) -> int:
    stop = index + (1 if tokens[index].upper == "UNIQUE" else 2)
    if at(tokens, stop).upper == "NULLS":
        if at(tokens, stop + 1).upper == "NOT":
            raise refuse(
                "UNIQUE NULLS NOT DISTINCT", "make a unique index on an expression with a substitute for NULL: coalesce(column, '')"
            )
        stop += 2
    stop += at(tokens, stop).upper in ("ASC", "DESC")
    stop = _conflict(tokens, stop)
    stop += at(tokens, stop).upper == "AUTOINCREMENT"
    refuse_key_options(tokens[stop : stop + 2])
    return stop


def refuse_key_options(tokens: Tokens) -> None:
    """Refuse options of a key that SQLite refuses or silently ignores. Raises SqlError 0A000."""
    for token in tokens[:2]:
        if token.upper in ("DEFERRABLE", "INITIALLY"):
            raise refuse("a DEFERRABLE primary key or unique constraint", "leave it out: keys are checked at once; foreign keys may wait")
        if token.upper in ("INCLUDE", "USING", "WITH"):
            raise refuse(f"{token.upper} of a key", "leave it out")


def _references_stop(tokens: Tokens, index: int) -> int:
    stop = index + 2
    if at(tokens, stop).text == ".":
        stop += 2
    if at(tokens, stop).text == "(":
        stop = closing(tokens, stop) + 1
    while stop < len(tokens):
        word = tokens[stop].upper
        if word == "ON" and at(tokens, stop + 1).upper in ("DELETE", "UPDATE"):
            stop += 3 + (at(tokens, stop + 2).upper in ("SET", "NO"))
        elif word == "MATCH":
            if at(tokens, stop + 1).upper != "SIMPLE":
                raise refuse(f"MATCH {at(tokens, stop + 1).upper} of a foreign key", "declare the columns NOT NULL")
            stop += 2
        elif word == "DEFERRABLE" or (word == "NOT" and at(tokens, stop + 1).upper == "DEFERRABLE"):
            stop += 1 + (word == "NOT")
        elif word == "INITIALLY":
            stop += 2
        else:
            break
    return stop


def check_references(tokens: Tokens) -> None:
    """Check a table's foreign key. Raises SqlError 0A000 for MATCH FULL or PARTIAL, which SQLite ignores."""
    for index, token in enumerate(tokens):
        if token.upper == "REFERENCES":
            _references_stop(tokens, index)


def rewrite_column(column: ColumnParts, edits: TextEdits, expressions: StoredExpressions | None = None) -> None:
    """Rewrite the type, default, collation and expressions of a column that is not an identity column.

    Args:
        expressions: of the table; None where its columns are unknown.

    Raises:
        SqlError: as `stored_default` and `StoredExpressions.rewrite`; 42704 for an unknown collation.
    """
    if column.type_tokens:
        edits.replace_tokens(column.type_tokens, column.declared)
    for clause in column.clauses:
        tokens = clause.tokens[2:] if clause.tokens[0].upper == "CONSTRAINT" else clause.tokens
        if clause.kind == "DEFAULT":
            if len(tokens) < 2:
                raise SqlError("42601", f'column "{column.name}" has DEFAULT without an expression')
            edits.replace_tokens(tokens[1:], stored_default(tokens[1:], column.declared, edits))
        elif clause.kind == "COLLATE" and len(tokens) > 1:
            edits.replace_tokens(tokens[1:], _collation(tokens[-1]))
        elif clause.kind in ("CHECK", "AS") and expressions is not None:
            expressions.rewrite(expression_of(tokens), edits, is_condition=clause.kind == "CHECK")
        elif clause.kind in ("CHECK", "AS"):
            constant_casts(tokens, edits)


def _collation(token: Token) -> str:
    collation = _COLLATIONS.get((token.name or "").upper())
    if collation is None:
        raise SqlError("42704", f"collation {token.text} does not exist", hint='There are BINARY (also as "C"), NOCASE and RTRIM.')
    return collation


def identity_text(column: ColumnParts, key_name: str | None, edits: TextEdits, expressions: StoredExpressions) -> str:
    """The definition of a serial or identity column in SQLite's syntax.

    Args:
        key_name: the name of the primary key's constraint, or None.

    Raises:
        SqlError: 0A000 or 42601 for an option that such a column cannot have.
    """
    if column.clause("IDENTITY") is not None and (not column.type_tokens or column.type_tokens[0].upper not in _INTEGER_TYPES):
        raise SqlError("22023", "identity column type must be smallint, integer, or bigint")
    constraints: list[str] = []
    for clause in column.clauses:
        if clause.kind in ("DEFAULT", "AS", "COLLATE"):
            raise SqlError("42601", f'serial or identity column "{column.name}" cannot have {clause.kind}')
        if clause.kind == "CHECK":
            expressions.rewrite(expression_of(clause.tokens), edits, is_condition=True)
        if clause.kind in ("CHECK", "REFERENCES"):
            constraints.append(edits.stretch(clause.tokens[0].start, clause.tokens[-1].end))
    name = f"CONSTRAINT {key_name} " if key_name else ""
    # Only a column declared INTEGER can be AUTOINCREMENT. The comment keeps the declared type for the catalogue.
    kind = _WIDTHS.get(column.type_tokens[0].upper if column.type_tokens else "", "")
    return " ".join([column.tokens[0].text, f"INTEGER {kind}{name}PRIMARY KEY AUTOINCREMENT", *constraints])


_WIDTHS = dict.fromkeys(("BIGSERIAL", "SERIAL8", "BIGINT", "INT8"), "/* bigint */ ") | dict.fromkeys(
    ("SMALLSERIAL", "SERIAL2", "SMALLINT", "INT2"), "/* smallint */ "
)
