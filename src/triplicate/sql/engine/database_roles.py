"""The roles and rights of one copy of a database, as its sessions use them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from triplicate.errors import SqlError
from triplicate.runtime import Host
from triplicate.security import SALT_BYTES, audit
from triplicate.sql.core.access_rights import NOTHING_STORED, AccessRights
from triplicate.sql.core.audit import AuditEvent, ConnectedClient
from triplicate.sql.core.rights import Action
from triplicate.sql.core.role_login import RoleLogin
from triplicate.sql.core.session_roles import SessionRoles


class DatabaseRoles:
    """Follows the copy; see `moved`.

    Args:
        name: of the database.
    """

    def __init__(self, host: Host, name: str) -> None:
        self._clock = host.clock
        self._name = name
        self._entropy = host.entropy
        self._schema_version = -1
        self.access: AccessRights = NOTHING_STORED
        """The roles and rights at the copy's position."""
        self.allowed: set[tuple[str | None, str]] = set()
        """The (role, or None for the administrator; statement) that were found to be allowed, by this schema and these rights.
        Either change replaces the set."""
        self.find_administrator: Callable[[str], RoleLogin | None] = lambda name: None
        """The login of the administrator in the list of databases, if that is the role's name."""
        self.catch_up: Callable[[], Awaitable[None]] | None = None
        """Returns when `access` is that of the state that readers see: an application commits on a thread and is reported afterwards."""

    def moved(self, schema_version: int, access: AccessRights) -> None:
        """The copy has moved on to this version of the schema, and to these rights."""
        if schema_version != self._schema_version or access is not self.access:
            self.allowed = set()
        self._schema_version, self.access = schema_version, access

    def login(self, name: str) -> RoleLogin | None:
        """The login of a role that is stored in the database, by this copy's state. None if there is none."""
        role = self.access.roles.get(name)
        return None if role is None else role.login

    def of_client(self, client: ConnectedClient) -> SessionRoles:
        """The roles of a new session. Without authentication every client is the administrator.

        Raises:
            SqlError: 42501, the role has no right to connect.
        """
        role = client.role
        is_administrator = not client.is_authenticated or self.is_administrator(role)
        if not is_administrator and not self.access.has(role, Action.CONNECT):
            raise SqlError("42501", f'permission denied for database "{self._name}"', detail="User does not have CONNECT privilege.")
        return SessionRoles(role, is_administrator=is_administrator)

    def is_administrator(self, name: str) -> bool:
        """Whether this is the name of the administrator in the list of databases."""
        found = self.find_administrator(name)
        return found is not None and found.is_administrator

    def new_salt(self) -> bytes:
        """Random bytes for a verifier."""
        return self._entropy.secret(SALT_BYTES)

    def audit(self, event: AuditEvent, facts: Mapping[str, object]) -> None:
        """Write an event to the audit log."""
        audit(event.value, self._clock.wall_us(), facts)
