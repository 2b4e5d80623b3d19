"""Tables whose rows are made for each statement that reads them: what a node does now, and what it reads elsewhere. Pure."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from triplicate.sql.core.access_rights import AccessRights
from triplicate.sql.core.column_codec import Value

LiveRow = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class LiveRequest:
    """A statement's wish for the rows of such a table."""

    arguments: Sequence[Value]
    """Of a table that is a function."""
    role: str | None
    """The current role; None for the administrator."""
    access: AccessRights
    """The roles and rights of the database."""

    @property
    def is_superuser(self) -> bool:
        return self.role is None or self.access.is_superuser(self.role)

    def may_see(self, role: str) -> bool:
        """Whether the statements of another role may be shown."""
        return self.is_superuser or (self.role is not None and self.access.is_member(self.role, role))


LiveSource = Callable[[LiveRequest], Coroutine[Any, Any, Sequence[LiveRow]]]
"""Makes the rows of one table. Raises SqlError."""
