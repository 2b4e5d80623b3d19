"""Translating SQLite's errors to SQLSTATEs and messages of PostgreSQL."""

from __future__ import annotations

import re
from decimal import DecimalException

import apsw

from triplicate.errors import SqlError

_CONSTRAINTS = {
    apsw.SQLITE_CONSTRAINT_UNIQUE: "23505",
    apsw.SQLITE_CONSTRAINT_PRIMARYKEY: "23505",
    apsw.SQLITE_CONSTRAINT_ROWID: "23505",
    apsw.SQLITE_CONSTRAINT_NOTNULL: "23502",
    apsw.SQLITE_CONSTRAINT_FOREIGNKEY: "23503",
    apsw.SQLITE_CONSTRAINT_CHECK: "23514",
    apsw.SQLITE_CONSTRAINT_TRIGGER: "P0001",
    apsw.SQLITE_CONSTRAINT_DATATYPE: "22P02",
}

_CODES = {
    apsw.SQLITE_CONSTRAINT: "23000",
    apsw.SQLITE_MISMATCH: "22P02",
    apsw.SQLITE_TOOBIG: "54000",
    apsw.SQLITE_FULL: "53100",
    apsw.SQLITE_READONLY: "25006",
    apsw.SQLITE_INTERRUPT: "57014",
    apsw.SQLITE_ABORT: "57014",
    apsw.SQLITE_AUTH: "42501",
    apsw.SQLITE_BUSY: "55P03",
    apsw.SQLITE_LOCKED: "55P03",
    apsw.SQLITE_NOMEM: "53200",
    apsw.SQLITE_IOERR: "58030",
    apsw.SQLITE_CANTOPEN: "58030",
    apsw.SQLITE_CORRUPT: "XX001",
    apsw.SQLITE_NOTADB: "XX001",
    apsw.SQLITE_RANGE: "08P01",
}

# SQLite reports most mistakes in a statement with one code; only the messages differ.
_MESSAGES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), state)
    for pattern, state in (
        (r"^no such table:|^no such view:|^no such table or view", "42P01"),
        (r"^no such column:|^table .* has no column named|has no column named|^cannot join using column|^no such column", "42703"),
        (r"syntax error$|^incomplete input|^unrecognized token|^near \"", "42601"),
        (r"^(table|index|view|trigger|there is already (a|an) (table|index|view|another table or index)).* already exists", "42P07"),
        (r"^there is already (a|an|another)", "42P07"),
        (r"^duplicate column name", "42701"),
        (r"^ambiguous column name", "42702"),
        (r"^no such function:|^wrong number of arguments to function|may not be used as a window function", "42883"),
        (r"^misuse of (aggregate|window)|^aggregate functions are not allowed|misuse of aggregate", "42803"),
        (r"^no such (index|trigger|collation sequence|module)", "42704"),
        (r"^table .* has \d+ columns? but \d+ values|^\d+ values for \d+ columns|SELECTs to the left and right", "42601"),
        (r"^all VALUES must have the same number of terms|^sub-select returns \d+ columns", "42601"),
        (r"^integer overflow", "22003"),
        (r"^no such savepoint", "3B001"),
        (r"^foreign key mismatch", "42830"),
        (r"^cannot (INSERT into|UPDATE) generated column", "428C9"),
        (r"^cannot (modify|insert|update|delete).*view|^cannot (INSERT|UPDATE)|may not be (modified|dropped|altered|indexed)", "42809"),
        (r"^cannot edit constraints", "42809"),
        (r"^cannot drop|^error in (view|trigger|index|table)", "2BP01"),
        (r"^cannot add a STORED column|^Cannot add a (UNIQUE column|column with non-constant default)", "0A000"),
        (r"^Cannot add a column to a view", "42809"),
        (r"^Cannot add a|^cannot add|has more than one primary key$|^must have at least one non-generated column", "42P16"),
        (r"^unknown column .* in foreign key definition", "42703"),
        (r"^number of columns in foreign key does not match", "42830"),
        (r"^foreign key on .* should reference only one column", "42830"),
        (r"^unknown database ", "3F000"),
        (r"^CHECK constraint failed", "23514"),
        (r"^constraint .* already exists", "42710"),
        (r"^no such constraint", "42704"),
        (r"^default value of column .* is not constant", "0A000"),
        (r"^too many|^Expression tree is too large|^parser stack overflow|^LIKE or GLOB pattern too complex|^Recursion limit", "54001"),
        (r"^json_object\(\) ", "22023"),
        (r"^malformed JSON|^bad JSON path|^JSON", "22032"),
        (r"^datatype mismatch|^cannot store", "22P02"),
        (r"^parameters prohibited|^ON CONFLICT clause does not match|prohibited in", "42P10"),
        (r"^not authorized|^access to .* is prohibited|authorization denied", "42501"),
        (r"^string or blob too big", "54000"),
        (r"^object name reserved", "42939"),
        (r"BY term (out of range|does not match)", "42P10"),
        (r"^table .* has \d+ values for \d+ columns$", "42P10"),
        (r"clause should come after|^a NATURAL join may not|^a JOIN clause is required|^unknown join type", "42601"),
        (r"^\d+ columns assigned \d+ values|^IN\(\.\.\.\) element has|^no tables specified", "42601"),
        (r"^HAVING clause on a non-aggregate|^row value misused|^DISTINCT (aggregates|is not supported)", "0A000"),
        (
            r"^FILTER (clause )?may|^ORDER BY may not be used|^RETURNING may not use|^UPSERT not implemented|^unable to use function",
            "0A000",
        ),
        (
            r"^unsafe use of|^no query solution|^cannot UPSERT|unsupported use of|^unsupported frame specification",
            "0A000",
        ),
        (r"recursive (table|reference|aggregate|quer)|^circular reference|^cannot use window functions in recursive", "42P19"),
        (r"^duplicate WITH table name|^target object/alias may not appear", "42712"),
        (r"^no such window", "42704"),
        (r"^cannot override|^RANGE with offset", "42P20"),
        (r"^frame (starting|ending) offset", "22013"),
        (r"^argument of ntile", "22014"),
        (r"^second argument to nth_value", "22016"),
        (r"^hex literal too big", "22003"),
        (r"^variable number must", "42P02"),
        (r"^ESCAPE expression must", "22019"),
        (r"^at most \d+ tables in a join|nested too deep", "54001"),
        (r"^table .* is not a (virtual )?table|^use DROP|^.* is not a", "42809"),
    )
)


_STORED = "SQLite checks all views and triggers when it changes a table. Drop this one first."

FAULTS = (Exception,)
"""Errors of a client's statement. The functions that it calls may raise anything, and it fails alone: the code that runs it undoes it,
and `from_sqlite` converts the error. A fault of the copy's own file is one of these as well, which the writer notes."""


def from_sqlite(error: Exception, sql: str | None = None) -> SqlError:
    """The error for the client that corresponds to an error of apsw, or of a function that a statement has called, which is its cause.

    Args:
        sql: the statement, to turn SQLite's byte offset into PostgreSQL's 1-based character position.
    """
    if isinstance(error, SqlError):
        return error
    failure = _converted(error, sql)
    failure.__cause__ = error
    return failure


def _converted(error: Exception, sql: str | None) -> SqlError:
    if isinstance(error, (UnicodeDecodeError, UnicodeEncodeError)):
        return SqlError("22021", f"text is not valid UTF-8: {error.reason}")
    message = str(error) or type(error).__name__
    if isinstance(error, (apsw.BindingsError,)):
        return SqlError("08P01", message)
    if not isinstance(error, apsw.Error):
        return _from_python(error, message)
    if isinstance(error, apsw.NoMemError):
        more = "Use fewer or shorter values at a time, or raise node.sql_memory_bytes."
        return SqlError("53200", "the statement needs more memory than SQLite may have in this process", hint=more)
    extended = int(getattr(error, "extendedresult", 0) or 0)
    code = int(getattr(error, "result", 0) or extended & 0xFF)
    hint = _STORED if message.startswith(("error in view", "error in trigger")) else None
    return SqlError(_state(code, extended, message), message, position=_position(error, sql), hint=hint)


def _from_python(error: Exception, message: str) -> SqlError:
    match error:
        case ZeroDivisionError():
            return SqlError("22012", "division by zero")
        case DecimalException():
            return SqlError("22003", "value overflows numeric format")
        case ArithmeticError():
            return SqlError("22003", message)
        case RecursionError():
            return SqlError("54001", "the statement is too complex: it is nested too deeply")
        case MemoryError():
            return SqlError("53200", "the memory does not suffice for the statement")
        case TypeError() | ValueError():
            return SqlError("22P02", message)
        case _:
            return SqlError("XX000", f"{type(error).__name__}: {message}")


def is_defect(failure: SqlError) -> bool:
    """Whether a converted error shows a defect of this program, and not one of the statement: its trace belongs in the log."""
    cause = failure.__cause__
    return failure.sqlstate == "XX000" and cause is not None and not isinstance(cause, (apsw.Error, SqlError))


def _state(code: int, extended: int, message: str) -> str:
    if extended in _CONSTRAINTS:
        return _CONSTRAINTS[extended]
    if code in _CODES:
        return _CODES[code]
    for pattern, state in _MESSAGES:
        if pattern.search(message):
            return state
    return "XX000"


def _position(error: Exception, sql: str | None) -> int | None:
    offset = int(getattr(error, "error_offset", -1))
    if sql is None or offset < 0:
        return None
    return len(sql.encode()[:offset].decode(errors="ignore")) + 1
