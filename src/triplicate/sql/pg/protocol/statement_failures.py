"""Errors of one message: the client gets them and the connection goes on, also after a defect of this program."""

from __future__ import annotations

import logging

from triplicate.errors import ProtocolError, SqlError
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
    return failure
