"""A node's local copies as files: recognising damage, and comparing a suspected copy with the log.

A copy is the folder ``databases/<name>`` with the SQLite file and SQLite's files beside it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

import apsw

from triplicate.errors import Diverged, EnvironmentFault
from triplicate.sql.core.records import decode_header
from triplicate.sql.storage.applier import LogBatch
from triplicate.sql.storage.sqlite_file import read_state

Result = TypeVar("Result")

FILE_NAME = "main.db"
_EPOCH_BITS = 40
_ROOM_BYTES = 32 * 1024 * 1024
"""A leader whose file can grow by less leaves the lead once a statement has found no room."""


def is_damage(error: apsw.Error) -> bool:
    """Whether SQLite reports that the content of the file is wrong. A full disk or a failed read is no damage: a retry may succeed."""
    if isinstance(error, apsw.NotADBError):
        return True
    # A virtual table reports the same error when a client has broken the rules of its own tables.
    of_virtual_table = getattr(error, "extendedresult", 0) == apsw.SQLITE_CORRUPT_VTAB
    return isinstance(error, apsw.CorruptError) and not of_virtual_table


def is_local_fault(connection: apsw.Connection, error: Exception) -> bool:
    """Whether a client's statement has met a fault of the copy's disk or file. Temporary files that find no room are none: they may be in
    another file system, and their statement gives the room back.
    """
    if isinstance(error, apsw.FullError):
        return _room(connection) < _ROOM_BYTES
    if isinstance(error, apsw.IOError):
        return getattr(error, "extendedresult", 0) != apsw.SQLITE_IOERR_GETTEMPPATH
    return isinstance(error, apsw.Error) and is_damage(error)


def _room(connection: apsw.Connection) -> int:
    """The bytes by which the file can grow."""
    pages = int(connection.pragma("max_page_count")) - int(connection.pragma("page_count"))
    facts = os.statvfs(connection.filename)
    return min(pages * int(connection.pragma("page_size")), facts.f_bavail * facts.f_frsize)


def with_file_errors(path: str, function: Callable[[], Result]) -> Result:
    """Call a function that uses a local file, and translate its errors.

    Raises:
        Diverged: the file is damaged. EnvironmentFault: it cannot be used now.
    """
    try:
        return function()
    except apsw.Error as error:
        if is_damage(error):
            raise Diverged(f"the local file {path} is damaged: {error}") from error
        raise EnvironmentFault(f"{path} cannot be opened: {error}") from error
    except OSError as error:
        raise EnvironmentFault(f"{path} cannot be opened: {error.strerror or error}") from error


def verify_last_batch(connection: apsw.Connection, batch: LogBatch | None) -> None:
    """Compare the batch that the copy applied last with the log's entry before its position. If they are equal, clear the copy's mark.

    Raises:
        Diverged: they differ. FormatError: the entry is of a later release.
    """
    state = read_state(connection)
    if batch is not None:
        where = f"the log's entry before offset {state.position}"
        end = batch.first_offset + len(batch.records)
        if end != state.position:
            raise Diverged(f"{where} ends at offset {end}")
        if batch.preamble is None:
            raise Diverged(f"{where} has no batch header; this is not the log of a database")
        header = decode_header(batch.preamble)
        logged = (header.database, header.epoch, header.batch)
        row = connection.execute("select max(last_id) from triplicate_transactions where position = ?", (state.position,)).fetchone()
        epoch = header.epoch if row is None or row[0] is None else int(row[0]) >> _EPOCH_BITS
        applied = (state.database, epoch, state.batch)
        if logged != applied:
            raise Diverged(
                f"{where} is batch {header.batch} of epoch {header.epoch}, this copy applied batch {state.batch} of epoch {epoch} last"
            )
    connection.execute("update triplicate_state set diverged = null")
