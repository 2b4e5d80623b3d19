"""Errors of one message: the client gets them and the connection goes on, also after a defect of this program."""

from __future__ import annotations

import logging

from triplicate.errors import ProtocolError, SqlError, Violation
from triplicate.sql.storage.sqlstates import from_sqlite, is_defect

_LOG = logging.getLogger(__name__)


def failure_of(error: Exception) -> SqlError:
    """The error for the client. One that shows a defect of this program is logged with its trace.

    Raises:
        ProtocolError, OSError: the error is one of the connection, which ends.
    """
    if isinstance(error, (ProtocolError, OSError)):
        raise error
    failure = from_sqlite(error)
    if is_defect(failure):
        _LOG.error("a statement failed: %s", failure, exc_info=failure)
    return failure if failure.violation is None else _worded(failure, failure.violation)


def _worded(failure: SqlError, violation: Violation) -> SqlError:
    """The violation of a constraint in PostgreSQL's words. SQLite does not say the key's value, so DETAIL has none."""
    table, columns, name, other = violation.table, ", ".join(violation.columns), violation.constraint, violation.other_table
    detail = None
    match violation.sqlstate:
        case "23505":
            message = f'duplicate key value violates unique constraint "{name}"'
            detail = f"Key ({columns}) already exists." if columns else None
        case "23502":
            message = f'null value in column "{columns}" of relation "{table}" violates not-null constraint'
        case "23514":
            message = f'new row for relation "{table}" violates check constraint "{name}"'
        case "23503" if violation.is_referred:
            message = f'update or delete on table "{table}" violates foreign key constraint "{name}" on table "{other}"'
            detail = f'Key is still referenced from table "{other}".'
        case _:
            message = f'insert or update on table "{table}" violates foreign key constraint "{name}"'
            detail = f'Key ({columns}) is not present in table "{other}".'
    worded = SqlError(violation.sqlstate, message, detail=detail, hint=failure.hint, position=failure.position)
    worded.context, worded.violation = failure.context, violation
    return worded
