"""Types of columns in definitions: the types to store, and PostgreSQL's types that are not available. Pure."""

from __future__ import annotations

import re

from triplicate.errors import SqlError
from triplicate.sql.pg.ddl.parts import SCHEMAS, Tokens, at, refuse, type_text

SERIALS = ("SERIAL", "SERIAL2", "SERIAL4", "SERIAL8", "SMALLSERIAL", "BIGSERIAL")
_TEXT_HINT = "declare the column TEXT"
_REFUSED = {
    "INTERVAL": "keep the seconds in a column of type BIGINT, or the text of the interval in one of type TEXT",
    "TIMETZ": "use TIME, or TIMESTAMPTZ",
    "MONEY": "use NUMERIC(19,2)",
    "CITEXT": "declare the column TEXT COLLATE NOCASE",
    "BIT": "use BYTEA or TEXT",
    "VARBIT": "use BYTEA or TEXT",
    "HSTORE": "use JSONB",
    **dict.fromkeys(
        ("POINT", "LINE", "LSEG", "BOX", "PATH", "POLYGON", "CIRCLE", "INET", "CIDR", "MACADDR", "MACADDR8", "TSVECTOR", "TSQUERY", "XML"),
        _TEXT_HINT,
    ),
    **dict.fromkeys(("INT4RANGE", "INT8RANGE", "NUMRANGE", "TSRANGE", "TSTZRANGE", "DATERANGE"), "use two columns"),
    **dict.fromkeys(("INT4MULTIRANGE", "INT8MULTIRANGE", "NUMMULTIRANGE", "TSMULTIRANGE", "TSTZMULTIRANGE", "DATEMULTIRANGE"), _TEXT_HINT),
    "OID": "declare the column BIGINT",
    # With these names, SQLite would store a text that looks like a number as a number.
    **dict.fromkeys(("NAME", "JSONPATH", "XID", "XID8", "CID", "TID"), _TEXT_HINT),
    **dict.fromkeys(("PG_LSN", "TXID_SNAPSHOT", "PG_SNAPSHOT", "REGCLASS", "REGTYPE", "REGPROC"), _TEXT_HINT),
}
_ARGUMENTS = re.compile(r"\(\s*(-?\d+)\s*(?:,\s*(-?\d+)\s*)?\)")
_PRECISION = 6
"""Digits of a second that a stored time has."""


def stored_type(tokens: Tokens) -> str:
    """The declared type in SQLite for the tokens of a type.

    Raises:
        SqlError: 0A000 for a type of PostgreSQL that is not available, 22023 for an invalid length or precision, 3F000 for an unknown
            schema, 42601 for a syntax error.
    """
    if at(tokens, 1).text == ".":
        if (tokens[0].name or "").upper() not in SCHEMAS:
            raise SqlError("3F000", f'schema "{tokens[0].name}" does not exist', hint="There is one schema, public.")
        tokens = tokens[2:]
    if not tokens:
        raise SqlError("42601", "the name of a type is missing")
    text = type_text(tokens)
    upper = text.upper()
    first = tokens[0].upper
    if "[" in text or "ARRAY" in upper.split():
        raise refuse(f"an array as the type of a column ({text})", "use a table of its own, or JSONB")
    if first in _REFUSED:
        raise refuse(f"type {text.lower()}", _REFUSED[first])
    arguments = _ARGUMENTS.search(text)
    first_argument, second_argument = (int(arguments[1]), int(arguments[2] or 0)) if arguments is not None else (None, 0)
    if first in ("TIME", "TIMESTAMP", "TIMESTAMPTZ"):
        return _moment(upper, text, first_argument)
    if first in ("NUMERIC", "DECIMAL", "DEC") and first_argument is not None:
        _check_numeric(first_argument, second_argument)
    if first in ("CHAR", "CHARACTER", "VARCHAR", "NCHAR", "BPCHAR") and first_argument is not None and first_argument < 1:
        raise SqlError("22023", f"length for type {first.lower()} must be at least 1")
    if upper in ("CHAR", "CHARACTER", "NCHAR"):
        return f"{text}(1)"
    return f"DECIMAL{text[3:]}" if first == "DEC" else text


def _moment(upper: str, text: str, precision: int | None) -> str:
    if precision is not None and precision != _PRECISION:
        raise refuse(f"{text.lower()}: a precision of {precision} digits", "leave it out: six digits of a second are kept")
    plain = _ARGUMENTS.sub("", text)
    if upper.startswith("TIME") and not upper.startswith("TIMESTAMP") and "WITH TIME ZONE" in upper:
        raise refuse("type time with time zone", _REFUSED["TIMETZ"])
    return " ".join(plain.split())


def _check_numeric(precision: int, scale: int) -> None:
    if not 1 <= precision <= 1000:
        raise SqlError("22023", f"NUMERIC precision {precision} must be between 1 and 1000")
    if not 0 <= scale <= precision:
        raise refuse(f"numeric({precision},{scale}): a scale that is negative or greater than the precision")
