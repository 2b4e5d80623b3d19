"""Statements that change the schema or a setting of the database, and the changes that followers need to repeat them.

Everything here blocks and runs on the thread of the writing connection, inside its open transaction.
"""

from __future__ import annotations

from collections.abc import Callable

import apsw

from triplicate.errors import SqlError
from triplicate.sql.catalogue.relations import is_reserved
from triplicate.sql.core.access_rights import Refusal
from triplicate.sql.core.added_references import added_reference
from triplicate.sql.core.interface import StatementKind
from triplicate.sql.core.lexer import first_words, sqlite_tokens
from triplicate.sql.core.records import SchemaChange, SettingChange
from triplicate.sql.core.rights import Action, Right
from triplicate.sql.core.schema_versions import SchemaVersions
from triplicate.sql.executor.authorizer import Authorizer, ChangeImages, change_images, reserved_name_refusal
from triplicate.sql.executor.change_capture import ChangeCapture
from triplicate.sql.executor.definitions import broken_by_rows, references, run_definition
from triplicate.sql.executor.redefinitions import refuse_unmatched_rows
from triplicate.sql.executor.stored_access import StoredAccess
from triplicate.sql.executor.stored_queries import refuse_uncomputable, stored_queries
from triplicate.sql.storage.sqlite_file import full_image_tables, set_change_images
from triplicate.sql.storage.sqlite_schema import relations_of, schema_digest, stored_text, table_names, unfit_reason
from triplicate.sql.storage.table_texts import add_reference


class SchemaStatements:
    """Runs such statements on one connection.

    Args:
        history: the versions of the schema, which every change moves on.
        access: the roles and rights, which follow changes of tables and views.
        checks_definitions: whether views and triggers that cannot be computed are refused.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        authorizer: Authorizer,
        capture: ChangeCapture,
        history: SchemaVersions,
        access: StoredAccess,
        *,
        checks_definitions: bool,
    ) -> None:
        self._access = access
        self._connection = connection
        self._authorizer = authorizer
        self._capture = capture
        self._history = history
        self._checks_definitions = checks_definitions

    def run(self, sql: str, fill_table: Callable[[str], None], role: str | None = None) -> None:
        """Run one statement.

        Args:
            fill_table: runs the statement that fills a new table, for CREATE TABLE AS.
            role: runs it, and owns what is new; None for the administrator.

        Raises:
            SqlError, apsw.Error: it failed; the caller undoes what it did.
        """
        if (images := change_images(sql)) is not None:
            self._change_images(images)
        elif first_words(sqlite_tokens(sql), 1) == ["PRAGMA"]:
            self._set_pragma(sql)
        else:
            before, referred = frozenset(relations_of(self._connection)), self._references(role)
            stored = stored_queries(self._connection)
            run_definition(self._connection, sql, self._change_schema, fill_table)
            if self._checks_definitions:
                refuse_uncomputable(self._connection, stored_queries(self._connection) - stored)
            after = frozenset(relations_of(self._connection))
            self._access.relations_changed(before, after, renames=first_words(sqlite_tokens(sql), 1) == ["ALTER"], owner=role)
            self._check_references(role, self._references(role) - referred)

    def _references(self, role: str | None) -> frozenset[tuple[str, str]]:
        """The foreign keys, as (table, referenced table) in lower case; none where the role need not be checked."""
        if role is None or self._access.current.is_superuser(role):
            return frozenset()
        return frozenset((child, parent) for child, parents in references(self._connection).items() for parent in parents)

    def _check_references(self, role: str | None, new: frozenset[tuple[str, str]]) -> None:
        """Check the right to refer to other tables. Raises SqlError 42501."""
        for _, parent in sorted(new):
            if role is not None and not self._access.current.has(role, Action.REFERENCES, parent):
                raise Refusal(role, Right(Action.REFERENCES, parent)).error

    def reload(self) -> None:
        """Have the capture see the schema as it is now."""
        self._capture.schema_changed(full_image_tables(self._connection))
        self._capture.prepare()

    def _change_images(self, images: ChangeImages) -> None:
        for found in [name for name in table_names(self._connection) if name.lower() == images.table.lower()]:
            self._record_images(found, images.value)
            return self.reload()
        raise SqlError("42P01", f"no such table: {images.table}")

    def _record_images(self, table: str, value: str) -> None:
        set_change_images(self._connection, table, value)
        self._capture.add(SettingChange(f"change_images:{table}", value))

    def _set_pragma(self, sql: str) -> None:
        with self._authorizer.running(StatementKind.SCHEMA):
            self._connection.execute(sql).fetchall()
        for name in ("user_version", "application_id"):
            if name in sql.lower():
                self._capture.add(SettingChange(name, self._connection.execute(f"pragma {name}").fetchall()[0][0]))

    def _change_schema(self, text: str) -> None:
        words, before, mark = first_words(sqlite_tokens(text)), table_names(self._connection), self._capture.mark()
        added = added_reference(text)
        if added is not None:
            add_reference(self._connection, added)
            refuse_unmatched_rows(self._connection, added)
        else:
            self._execute(text)
        after = table_names(self._connection)
        if words[0] == "ALTER" and len(after) < len(before):
            # SQLite does not pass the new name to the authorizer. `table_names` leaves out internal tables.
            raise SqlError("42501", "names that begin with triplicate_ belong to Triplicate")
        for name in after - before:
            if is_reserved(name):
                raise SqlError("42939", reserved_name_refusal(name))
        # A follower repeats the effect of a schema change on rows when it applies the text. An exception is DROP TABLE: its effect on the
        # rows of other tables comes from foreign keys, which are off on followers.
        self._capture.keep_only(mark, before & after if words[:2] == ["DROP", "TABLE"] else frozenset())
        self._capture.end_statement()
        digest = schema_digest(self._connection)
        if digest == self._history.current.digest and words[0] not in ("ANALYZE", "REINDEX"):
            return
        self.reload()
        self._refuse_unfit()
        made = after - before
        stored = stored_text(self._connection, made) if words[0] == "CREATE" and words[1] != "VIRTUAL" and len(made) == 1 else None
        self._history.change(digest)
        self._capture.add(SchemaChange(stored or text, digest))
        if stored is not None:
            self._capture.scan_table(next(iter(made)))
        self._move_images(before, after)

    def _execute(self, text: str) -> None:
        try:
            with self._authorizer.running(StatementKind.SCHEMA):
                self._connection.execute(text).fetchall()
        except apsw.ConstraintError as error:
            raise broken_by_rows(self._connection, text) or error from error

    def _move_images(self, before: frozenset[str], after: frozenset[str]) -> None:
        """A renamed table keeps its change images, a dropped one loses them."""
        for name in sorted(full_image_tables(self._connection) - after):
            self._record_images(name, "keys")
            made = after - before
            if len(made) == 1 and len(before - after) == 1:
                self._record_images(next(iter(made)), "full")
            self.reload()

    def _refuse_unfit(self) -> None:
        for table in self._capture.tables():
            reason = unfit_reason(table)
            if reason is not None:
                raise SqlError("0A000", reason)
