"""Gives a table that holds rows a foreign key, on the leader and on every copy, by a change of the table's text.

SQLite's documentation, "ALTER TABLE", section "Making Other Kinds Of Table Schema Changes", describes this for changes that leave the
content of the file as it is. The caller has checked that SQLite accepts the new text: one that it cannot read would make the file unusable.
"""

from __future__ import annotations

import apsw

from triplicate.sql.core.added_references import AddedReference, with_constraint


def add_reference(connection: apsw.Connection, added: AddedReference) -> None:
    """Change the text of the table inside the open transaction. Rows are not checked.

    Raises:
        apsw.SQLError: there is no such table.
    """
    rows = connection.execute(
        "select name, sql from main.sqlite_schema where type = 'table' and lower(name) = lower(?)", (added.table,)
    ).fetchall()
    if not rows:
        raise apsw.SQLError(f"no such table: {added.table}")
    name, created = rows[0]
    version = int(connection.pragma("schema_version"))
    defensive = connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, -1)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    try:
        connection.execute("pragma writable_schema = on")
        text = with_constraint(str(created), added.constraint)
        connection.execute("update main.sqlite_schema set sql = ? where type = 'table' and name = ?", (text, name))
        # All connections read the schema again, this one included.
        connection.execute(f"pragma schema_version = {version + 1}")
    finally:
        connection.execute("pragma writable_schema = off")
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, defensive)
