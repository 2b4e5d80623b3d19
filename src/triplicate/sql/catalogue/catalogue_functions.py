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
from triplicate.sql.catalogue.object_names import quoted
from triplicate.sql.catalogue.relations import CATALOG, INFORMATION, PUBLIC, relation_oid
from triplicate.sql.catalogue.size_functions import SizeFunctions
from triplicate.sql.catalogue.system_tables import SYSTEM_OIDS
from triplicate.sql.catalogue.type_names import TYPE_FUNCTIONS, TYPES, format_type, type_named
from triplicate.sql.catalogue.virtual_tables import CatalogueReader
from triplicate.sql.core.access_rights import ADMINISTRATOR, ALL_ON_TABLE
from triplicate.sql.core.interface import Value
from triplicate.sql.core.rights import Action
from triplicate.sql.core.session_roles import SessionName

_SCHEMAS = {"pg_catalog": CATALOG, "public": PUBLIC, "information_schema": INFORMATION}
CONSTANT_SETTINGS = {
    "server_version": "15.0",
    "server_version_num": "150000",
    "server_encoding": "UTF8",
    "standard_conforming_strings": "on",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "block_size": "8192",
    "integer_datetimes": "on",
}
"""Settings that are the same for every session, so that a function can return them without access to the session."""
UNUSED_SETTINGS = {"default_table_access_method": "heap", "default_tablespace": ""}
"""Settings that a session may change, without an effect. The function returns these values of theirs."""


_UTF8 = 6
"""The number of the encoding."""
_NOTHING = (
    "obj_description", "col_description", "shobj_description", "pg_get_serial_sequence", "pg_describe_object", "pg_get_functiondef",
    "pg_get_function_arguments", "pg_get_function_identity_arguments", "pg_get_function_result", "pg_get_function_sqlbody",
    "pg_get_ruledef", "pg_get_statisticsobjdef", "pg_get_statisticsobjdef_columns", "pg_get_partkeydef",
)  # fmt: skip
"""Functions of what does not exist here."""
_VISIBLE = (
    "collation", "conversion", "function", "opclass", "operator", "opfamily", "statistics_obj", "ts_config", "ts_dict", "ts_parser",
    "ts_template",
)  # fmt: skip
"""Kinds of objects that are all found without the name of their schema."""
_ABSENT = {
    "regproc": ("function", "42883"), "regprocedure": ("function", "42883"), "regoper": ("operator", "42883"),
    "regoperator": ("operator", "42883"), "regconfig": ("text search configuration", "42704"),
    "regdictionary": ("text search dictionary", "42704"),
}  # fmt: skip
"""Maps a type of objects that the catalogue does not list to what its objects are, and the SQLSTATE for an absent one."""
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

    def relation(self, value: Value) -> int | None:
        """As `cast_regclass`, also for an oid in digits."""
        oid = self.cast_regclass(value)
        return None if oid is None else _integer(oid)

    def regclass_text(self, oid: Value) -> Value:
        """The name of a relation; the digits of an unknown oid."""
        if oid is None:
            return None
        own = self._reader.read().names.get(_integer(oid))
        return own or next((name for name, number in SYSTEM_OIDS.items() if number == oid), _text(oid) if oid else "-")

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

    def cast_regrole(self, value: Value) -> Value:
        if value is None or isinstance(value, int):
            return value
        name = _text(value).strip('"')
        return self._reader.read().roles.oids.get(self._name(name))

    def regrole_text(self, oid: Value) -> Value:
        return None if oid is None else self._reader.read().roles.names.get(_integer(oid), _text(oid) if oid else "-")

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

    def get_constraintdef(self, oid: Value, pretty: Value = None) -> Value:
        """The definition; the expression of a CHECK has another pair of brackets, but for people."""
        text = None if oid is None else self._reader.read().constraint_texts.get(_integer(oid))
        return text if text is None or pretty or not text.startswith("CHECK (") else f"CHECK ({text.removeprefix('CHECK ')})"

    def get_indexdef(self, oid: Value, column: Value = 0, pretty: Value = None) -> Value:
        """The whole CREATE INDEX, or one key column from 1. For people it has neither the schema nor brackets around its condition."""
        found = None if oid is None else self._reader.read().index_texts.get(_integer(oid))
        if found is None or column is None:
            return None
        created, condition, columns = found
        number = _integer(column)
        if number:
            return columns[number - 1] if 0 < number <= len(columns) else ""
        if pretty:
            return created.replace(" ON public.", " ON ", 1) + (f" WHERE {condition}" if condition else "")
        return created + (f" WHERE ({condition})" if condition else "")

    def get_definition(self, oid: Value, _pretty: Value = None) -> Value:
        """The query of a view, given its name or oid, or the CREATE TRIGGER of a trigger, as they are stored."""
        return None if oid is None else self._reader.read().definitions.get(_integer(self.cast_regclass(oid)))

    def is_visible(self, oid: Value) -> Value:
        """Whether a relation is found without the name of its schema. All are, because there is one schema."""
        return None if oid is None else int(_integer(oid) in self._reader.read().names or oid in SYSTEM_OIDS.values())

    @staticmethod
    def type_is_visible(oid: Value) -> Value:
        return None if oid is None else int(oid in TYPES)

    # Users and schemas.

    def get_userbyid(self, oid: Value) -> Value:
        return None if oid is None else self._reader.read().roles.names.get(_integer(oid), f"unknown (OID={_text(oid)})")

    def role_named(self, name: Value, *session: Value) -> Value:
        """The role of a name. The names of a session itself, which are given by `SessionName`, are those of the roles that it has.

        The oid of an administrator's session is that of its name, see `RoleCatalogue.of_session`.
        """
        if isinstance(name, int) and name not in self._reader.read().roles.names:
            own = str(session[SessionName.SESSION])
            name = own if self._reader.read().roles.oid(own) == name else name
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
        found = (CONSTANT_SETTINGS | UNUSED_SETTINGS).get(text.lower())
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
    """NULL, for functions of what does not exist here: comments, rules, functions of users."""
    return None


def _always(value: Value) -> Callable[..., Value]:
    """A function with one answer for every argument but NULL."""
    return lambda *arguments: None if arguments and arguments[0] is None else value


def _absent(kind: str, sqlstate: str) -> Callable[[Value], Value]:
    """The cast of a name to a type of objects that the catalogue does not list, but for the functions of types; ``-`` is none."""

    def cast(value: Value) -> Value:
        if value is None or value in (0, "-"):
            return None if value is None else "-"
        name = _text(value).removeprefix("pg_catalog.")
        if kind == "function" and name in TYPE_FUNCTIONS:
            return name
        raise SqlError(sqlstate, f'{kind} "{_text(value)}" does not exist in the catalogue, which lists no {kind}s')

    return cast


def _encoding_number(name: Value) -> Value:
    return None if name is None else _UTF8 if _text(name).lower().replace("-", "") in ("utf8", "unicode") else -1


def _encoding_name(number: Value) -> Value:
    return None if number is None else "UTF8" if number == _UTF8 else ""


def _setting(rows: Value, name: Value, missing_ok: Value = 0) -> Value:
    """A setting of the session, given the rows of pg_settings."""
    if name is None:
        return None
    found = {str(row[0]).lower(): row[1] for row in json.loads(_text(rows))}
    if _text(name).lower() not in found and not missing_ok:
        raise SqlError("42704", f'unrecognized configuration parameter "{_text(name)}"')
    setting: Value = found.get(_text(name).lower())
    return setting


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
        "pg_get_viewdef": functions.get_definition,
        "pg_get_triggerdef": functions.get_definition,
        "pg_cast_regrole": functions.cast_regrole,
        "pg_regrole_text": functions.regrole_text,
        "pg_encoding_to_char": _encoding_name,
        "pg_char_to_encoding": _encoding_number,
        "current_database": lambda: reader.database,
        "getdatabaseencoding": lambda: "UTF8",
        "pg_tablespace_location": _always(""),
        "pg_relation_is_publishable": _always(0),
        "pg_setting": _setting,
        "quote_ident": lambda name: None if name is None else quoted(_text(name)),
        "json_build_object": _json_object,
    }
    scalars |= dict.fromkeys(_NOTHING, _nothing)
    scalars |= {f"pg_{kind}_is_visible": _always(1) for kind in _VISIBLE}
    for kind, (shown, sqlstate) in _ABSENT.items():
        scalars |= {f"pg_cast_{kind}": _absent(shown, sqlstate), f"pg_{kind}_text": _absent(shown, sqlstate)}
    scalars |= SizeFunctions(connection, reader.read, functions.relation).by_name()
    for name, function in scalars.items():
        connection.create_scalar_function(name, function, -1, flags=apsw.SQLITE_DIRECTONLY)
    register_arrays(connection)
