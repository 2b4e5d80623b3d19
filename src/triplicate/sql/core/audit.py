"""The facts that the audit log has of a database's clients. Pure; `triplicate.security.audit` writes them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class AuditEvent(Enum):
    """The events of databases in the audit log, by their names in it."""

    LOGIN_ACCEPTED = "login accepted"
    LOGIN_REFUSED = "login refused"
    ADMINISTRATOR_CHANGED = "administrator changed"
    STATEMENT_REFUSED = "statement refused"
    ROLE_CHANGED = "role changed"
    SCHEMA_CHANGED = "schema changed"


@dataclass(frozen=True, slots=True)
class ConnectedClient:
    """A client of a database, as its session and the audit log know it."""

    database: str = ""
    role: str = ""
    """The role that was authenticated; without authentication, the name that the client gave."""
    address: str = ""
    """Of the machine that it connects from. Empty for a caller in this process."""
    tls: str | None = None
    """The version of TLS; None for a connection in the clear."""
    is_authenticated: bool = False
    """Whether the role was proven. Rights are checked then; a node without authentication trusts every client with everything."""

    def facts(self, **more: object) -> dict[str, object]:
        """Facts for the audit log."""
        return {"database": self.database, "role": self.role, "address": self.address, "tls": self.tls, **more}


IN_PROCESS = ConnectedClient()
"""A caller in this process."""
