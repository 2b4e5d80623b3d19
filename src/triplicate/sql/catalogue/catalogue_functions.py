"""Functions over the catalogue, for one connection: names of objects from their oids and back, and texts of their definitions.

The rewriter translates a cast to an object's type to ``pg_cast_regclass`` or a similar function. Clients do not call these functions.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import apsw

from triplicate.errors import SqlError
from triplicate.sql.catalogue.array_functions import array_values, register_arrays
from triplicate.sql.catalogue.relations import CATALOG, CATALOG_OIDS, INFORMATION, PUBLIC, relation_oid
from triplicate.sql.catalogue.type_names import TYPES, format_type, type_named
from triplicate.sql.catalogue.virtual_tables import CatalogueReader
from triplicate.sql.core.access_rights import ADMINISTRATOR, ALL_ON_TABLE
from triplicate.sql.core.interface import Value
from triplicate.sql.core.rights import Action
from triplicate.sql.core.session_roles import SessionName

_SCHEMAS = {"pg_catalog": CATALOG, "public": PUBLIC, "information_schema": INFORMATION}
_CONSTANT_SETTINGS = {
    "server_version": "15.0",
    "server_version_num": "150000",
    "server_encoding": "UTF8",
    "standard_conforming_strings": "on",
    "default_table_access_method": "heap",
    "default_tablespace": "",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "block_size": "8192",
    "integer_datetimes": "on",
}
"""Settings that are the same for every session, so that a function can return them without access to the session."""


_PRIVILEGES = {action.name: action for action in ALL_ON_TABLE}


class _Functions:
    """The SQL functions of one connection."""

    def __init__(self, reader: CatalogueReader) -> None:
        self._reader = reader

    # Names and oids.

    def to_regclass(self, name: Value) -> Value:
        """The oid of a relation; NULL when it does not exist."""
        return None if name is None else relation_oid(self._reader.read(), _text(name))

    def cast_regclass(self, value: Value) -> Value:
        """The oid of a relation, given its name or its oid. Raises SqlError 42P01 if it does not exist."""
        if value is None or isinstance(value, int):
            return value
        found = self.to_regclass(value)
        if found is None:
            raise SqlError("42P01", f'relation "{_text(value)}" does not exist')
        return found

    def regclass_text(self, oid: Value) -> Value:
        """The name of a relation; the digits of an unknown oid."""
        if oid is None:
            return None
        own = self._reader.read().names.get(_integer(oid))
        return own or next((name for name, number in CATALOG_OIDS.items() if number == oid), _text(oid) if oid else "-")

    @staticmethod
    def to_regtype(name: Value) -> Value:
        return None if name is None else type_named(_text(name))

    @staticmethod
    def cast_regtype(value: Value) -> Value:
        if value is None or isinstance(value, int):
            return value
        found = type_named(_text(value))
        if found is None:
            raise SqlError("42704", f'type "{_text(value)}" does not exist')
        return found

    @staticmethod
    def regtype_text(oid: Value) -> Value:
        if oid is None:
            return None
        return format_type(_integer(oid), None) if oid in TYPES else _text(oid) if oid else "-"

    @staticmethod
    def cast_regnamespace(value: Value) -> Value:
        if value is None or isinstance(value, int):
            return value
        if value not in _SCHEMAS:
            raise SqlError("3F000", f'schema "{_text(value)}" does not exist')
        return _SCHEMAS[str(value)]

    @staticmethod
    def regnamespace_text(oid: Value) -> Value:
        return None if oid is None else next((name for name, number in _SCHEMAS.items() if number == oid), _text(oid))

    # Definitions.

    @staticmethod
    def format_type(oid: Value, modifier: Value = None) -> Value:
        return None if oid is None else format_type(_integer(oid), None if modifier is None else _integer(modifier))

    @staticmethod
    def get_expr(expression: Value, _relation: Value = None, _pretty: Value = None) -> Value:
        """The expression as it is stored, which is as it was written."""
        return expression

    def get_constraintdef(self, oid: Value, _pretty: Value = None) -> Value:
        return None if oid is None else self._reader.read().constraint_texts.get(_integer(oid))

    def get_indexdef(self, oid: Value, column: Value = 0, _pretty: Value = None) -> Value:
        """The whole CREATE INDEX, or one key column from 1."""
        found = None if oid is None else self._reader.read().index_texts.get(_integer(oid))
        if found is None or column is None:
            return None
        created, columns = found
        number = _integer(column)
        return created if number == 0 else columns[number - 1] if 0 < number <= len(columns) else ""

    def is_visible(self, oid: Value) -> Value:
        """Whether a relation is found without the name of its schema. All are, because there is one schema."""
        return None if oid is None else int(_integer(oid) in self._reader.read().names or oid in CATALOG_OIDS.values())

    @staticmethod
    def type_is_visible(oid: Value) -> Value:
        return None if oid is None else int(oid in TYPES)

    # Users and schemas.

    def get_userbyid(self, oid: Value) -> Value:
        return None if oid is None else self._reader.read().roles.names.get(_integer(oid), f"unknown (OID={_text(oid)})")

    @staticmethod
    def role_named(name: Value, *session: Value) -> Value:
        """The role of a name. The names of a session itself, which are given by `SessionName`, are those of the roles that it has."""
        if name == session[SessionName.CURRENT]:
            return session[SessionName.ACTING]
        return session[SessionName.LOGGED_IN] if name == session[SessionName.SESSION] else name

    def has_table_privilege(self, user: Value, table: Value, privileges: Value) -> Value:
        """Whether a role has one of the privileges on a table or view. An empty `user` is the administrator."""
        if None in (user, table, privileges):
            return None
        access, found = self._reader.read().roles.access, self._relation(table)
        actions = [_PRIVILEGES.get(word.strip()) for word in _text(privileges).upper().split(",")]
        if None in actions:
            raise SqlError("22023", f'unrecognized privilege type: "{_text(privileges)}"')
        role = self._role(user)
        if role is None or found is None:
            return 1  # The tables of the catalogue are for everyone.
        return int(any(access.has(role, action, found) for action in actions if action is not None))

    def has_column_privilege(self, user: Value, table: Value, column: Value, privileges: Value) -> Value:
        """Whether a role has one of the privileges on a column, which are those on its table."""
        if None in (user, table, column, privileges):
            return None
        oid = _integer(self.cast_regclass(table))
        attributes = self._reader.read().rows["pg_attribute"]
        if not isinstance(column, int) and (oid, _text(column)) not in [tuple(row[:2]) for row in attributes]:
            raise SqlError("42703", f'column "{_text(column)}" of relation "{_text(self.regclass_text(oid))}" does not exist')
        return self.has_table_privilege(user, oid, privileges)

    def _relation(self, table: Value) -> str | None:
        """The name of a table or view, given its name or oid; None for one of the catalogue."""
        oid = _integer(self.cast_regclass(table))
        return next((name for name, number in self._reader.read().relations.items() if number == oid), None)

    def has_database_privilege(self, user: Value, database: Value, privileges: Value) -> Value:
        """Whether a role has one of the privileges on the database."""
        if None in (user, database, privileges):
            return None
        if not isinstance(database, int) and _text(database) != self._reader.database:
            raise SqlError("3D000", f'database "{_text(database)}" does not exist')
        return self._has_on_database(user, privileges)

    def has_schema_privilege(self, user: Value, schema: Value, privileges: Value) -> Value:
        """Whether a role has one of the privileges on a schema. All may use the schema, and CREATE is granted on the database."""
        return None if None in (user, schema, privileges) else self._has_on_database(user, privileges)

    def _has_on_database(self, user: Value, privileges: Value) -> Value:
        role = self._role(user)
        words = [word.strip() for word in _text(privileges).upper().split(",")]
        if role is None or "USAGE" in words:
            return 1
        actions = [Action[word] for word in words if word in ("CREATE", "CONNECT")]
        return int(any(self._reader.read().roles.access.has(role, action) for action in actions))

    def has_role(self, user: Value, role: Value, _privileges: Value) -> Value:
        """Whether a role is a member of another. A superuser is a member of all, and nobody else of the administrator."""
        if user is None or role is None:
            return None
        roles = self._reader.read().roles
        member, of = self._role(user), self._name(role)
        return int(member is None or roles.access.is_member(member, of))

    def _role(self, user: Value) -> str | None:
        """The name of a role, given its name or oid; None for the administrator, and for a superuser."""
        name = self._name(user)
        return None if name == ADMINISTRATOR or self._reader.read().roles.access.is_superuser(name) else name

    def _name(self, role: Value) -> str:
        """The name of a role that exists, given its name or oid; an empty one is the administrator's."""
        roles = self._reader.read().roles
        name = roles.names.get(role, _text(role)) if isinstance(role, int) else _text(role) or ADMINISTRATOR
        if name != ADMINISTRATOR and not roles.access.exists(name) and name.lower() != "public":
            raise SqlError("42704", f'role "{name}" does not exist')
        return name

    @staticmethod
    def current_schemas(implicit: Value) -> Value:
        return "{pg_catalog,public}" if implicit else "{public}"

    @staticmethod
    def current_setting(name: Value, missing_ok: Value = 0) -> Value:
        """A setting that is the same for all sessions."""
        if name is None:
            return None
        text = _text(name)
        found = _CONSTANT_SETTINGS.get(text.lower())
        if found is None and not missing_ok:
            raise SqlError(
                "0A000",
                f"current_setting('{text}') is not available inside a query",
                hint=f"Use SHOW {text}, or SELECT current_setting('{text}') as a statement of its own.",
            )
        return found


def _text(value: Value) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _integer(value: Value) -> int:
    try:
        return int(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise SqlError("22P02", f'invalid input syntax for type oid: "{value!r}"') from None


def _array_to_string(array: Value, separator: Value, null: Value = None) -> Value:
    """The values of an array as one text. NULL values are left out without a text for them."""
    if array is None or separator is None:
        return None
    found = [null if value is None else value for value in array_values(array)]
    return _text(separator).join(_text(value) for value in found if value is not None)


def _nothing(*_: Value) -> Value:
    """NULL, for functions of comments and sequences, which do not exist here."""
    return None


def _json_object(*parts: Value) -> Value:
    return json.dumps({_text(key): value for key, value in zip(parts[::2], parts[1::2], strict=True)}, default=_text)


def register_functions(connection: apsw.Connection, reader: CatalogueReader) -> None:
    """Register the functions on a connection. Views and triggers may not use them."""
    functions = _Functions(reader)
    scalars: dict[str, Callable[..., Any]] = {
        "to_regclass": functions.to_regclass,
        "pg_cast_regclass": functions.cast_regclass,
        "pg_regclass_text": functions.regclass_text,
        "to_regtype": functions.to_regtype,
        "pg_cast_regtype": functions.cast_regtype,
        "pg_regtype_text": functions.regtype_text,
        "pg_cast_regnamespace": functions.cast_regnamespace,
        "pg_regnamespace_text": functions.regnamespace_text,
        "format_type": functions.format_type,
        "pg_get_expr": functions.get_expr,
        "pg_get_constraintdef": functions.get_constraintdef,
        "pg_get_indexdef": functions.get_indexdef,
        "pg_table_is_visible": functions.is_visible,
        "pg_type_is_visible": functions.type_is_visible,
        "pg_collation_is_visible": functions.type_is_visible,
        "pg_get_userbyid": functions.get_userbyid,
        "current_schemas": functions.current_schemas,
        "current_setting": functions.current_setting,
        "has_table_privilege": functions.has_table_privilege,
        "has_column_privilege": functions.has_column_privilege,
        "has_any_column_privilege": functions.has_table_privilege,
        "has_schema_privilege": functions.has_schema_privilege,
        "has_database_privilege": functions.has_database_privilege,
        "pg_has_role": functions.has_role,
        "pg_role_named": functions.role_named,
        "array_to_string": _array_to_string,
        "obj_description": _nothing,
        "col_description": _nothing,
        "shobj_description": _nothing,
        "pg_get_serial_sequence": _nothing,
        "json_build_object": _json_object,
    }
    for name, function in scalars.items():
        connection.create_scalar_function(name, function, -1, flags=apsw.SQLITE_DIRECTONLY)
    register_arrays(connection)
