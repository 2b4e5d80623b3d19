"""The facts of a schema that the check of a statement needs, read once for each: kinds of relations, and what they add to a statement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import apsw

from triplicate.sql.core.expansion import SchemaSizes, fold
from triplicate.sql.storage.sqlite_schema import growing_relations, relation_kinds


@dataclass(frozen=True, slots=True)
class ExaminedSchema:
    """A schema of a database."""

    kinds: Mapping[str, str]
    """Maps a name, as `fold` has it, to ``table`` or ``view``."""
    sizes: SchemaSizes

    def kind(self, name: str) -> str | None:
        """``table`` or ``view``; None for a virtual table, or for none."""
        return self.kinds.get(fold(name))

    def has_only_views(self, names: Iterable[str]) -> bool:
        """Whether a statement that reads these reads views, but no table."""
        return {self.kind(name) for name in names} - {None} == {"view"}


class NewestSchema:
    """The newest schema that the connections of a database have seen. They may use it on different threads at the same time."""

    def __init__(self) -> None:
        self._newest: tuple[int, ExaminedSchema] | None = None

    def of(self, connection: apsw.Connection) -> ExaminedSchema:
        """The schema that a connection sees."""
        version, newest = int(connection.pragma("schema_version")), self._newest
        if newest is not None and newest[0] == version:
            return newest[1]
        schema = ExaminedSchema(relation_kinds(connection), SchemaSizes(*growing_relations(connection)))
        if newest is None or version > newest[0]:  # An old snapshot sees an older one.
            self._newest = version, schema
        return schema

    def forget(self) -> None:
        """A change of the schema begins. It may be rolled back, and SQLite then uses its version again."""
        self._newest = None
