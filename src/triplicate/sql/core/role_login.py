"""The facts of a role that a server needs before it lets a client in. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

NO_LIMIT = -1


@dataclass(frozen=True, slots=True)
class RoleLogin:
    """One role of a database, as its login sees it."""

    name: str
    verifier: str | None = field(repr=False)
    """The verifier of its password, in the form of `ScramVerifier.parse`; None where it has no password, and cannot log in by one."""
    can_login: bool = True
    is_administrator: bool = False
    """Whether it may do everything in this database, as PostgreSQL's superuser."""
    valid_until_us: int | None = None
    """Microseconds since the epoch, UTC, from which on the password is not accepted; None for no end."""
    connection_limit: int = NO_LIMIT
    """Connections that it may have at this node; `NO_LIMIT` for no limit."""
