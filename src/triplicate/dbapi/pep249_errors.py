"""The exceptions of PEP 249, and the errors of the database as such."""

from __future__ import annotations

from triplicate.errors import SqlError, TriplicateError, UsageError


class Warning(Exception):  # noqa: A001  the name is PEP 249's
    """Important warnings. Not raised here."""


class Error(Exception):
    """Every error of this module.

    Attributes:
        sqlstate: five characters of PostgreSQL's error codes; empty for errors that are not the database's.
        hint, detail: how to correct the problem, and more about it; None if there is nothing to say.
    """

    sqlstate: str = ""
    hint: str | None = None
    detail: str | None = None


class InterfaceError(Error):
    """An error of the interface rather than of the database."""


class DatabaseError(Error):
    """An error of the database."""


class DataError(DatabaseError):
    """A value that cannot be processed, such as one out of range."""


class OperationalError(DatabaseError):
    """An error of the operation of the database: a wait that took too long, a lost lead, a full disk, an interrupted statement."""


class IntegrityError(DatabaseError):
    """A constraint is violated."""


class InternalError(DatabaseError):
    """A defect."""


class ProgrammingError(DatabaseError):
    """A mistake of the program: wrong SQL, an unknown table, a wrong number of parameters, a closed connection."""


class NotSupportedError(DatabaseError):
    """A feature that is not available on a replicated database."""


_CLASSES: dict[str, type[Error]] = {
    "08P01": ProgrammingError,
    "0A": NotSupportedError,
    "22": DataError,
    "23": IntegrityError,
    "26": ProgrammingError,
    "34": ProgrammingError,
    "3B": ProgrammingError,
    "3D": ProgrammingError,
    "42": ProgrammingError,
    "XX": InternalError,
}
"""By SQLSTATE, or by its class. Others are errors of the operation."""


def error_class(sqlstate: str) -> type[Error]:
    """The exception for a SQLSTATE."""
    return _CLASSES.get(sqlstate) or _CLASSES.get(sqlstate[:2]) or OperationalError


def of_database(error: TriplicateError) -> Error:
    """The exception of PEP 249 for an error of the database or of its cluster."""
    if isinstance(error, SqlError):
        found = error_class(error.sqlstate)(error.message)
        found.sqlstate, found.hint, found.detail = error.sqlstate, error.hint, error.detail
        return found
    return (ProgrammingError if isinstance(error, UsageError) else OperationalError)(str(error))
