"""Roles, and what they allow at a bookie.

A role comes from the file of users, or from a client's certificate. There its organisational unit holds ``CODE:VALUES`` parts between
semicolons, and code 0 stands for roles. Source: BookKeeper `CertUtils`, `BookieAuthZFactory`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from triplicate.errors import ArgumentError


class BookieRole(Enum):
    """A role of a principal. The values are the names in files and certificates."""

    READ = "read"
    """Read entries, lists of them, the last-add-confirmed, and the bookie's disk space."""
    WRITE = "write"
    """Add, force, write the explicit last-add-confirmed, and fence, also for a recovery."""
    ADMIN = "admin"
    """Everything: for auto-recovery and operators."""


@dataclass(frozen=True, slots=True)
class Rights:
    """Rights of a connection."""

    may_read: bool
    may_write: bool

    @classmethod
    def of(cls, roles: Collection[BookieRole]) -> Rights:
        """The rights of these roles together."""
        is_admin = BookieRole.ADMIN in roles
        return cls(is_admin or BookieRole.READ in roles, is_admin or BookieRole.WRITE in roles)

    @property
    def are_full(self) -> bool:
        """Whether nothing is refused."""
        return self.may_read and self.may_write


FULL_RIGHTS = Rights(True, True)
NO_RIGHTS = Rights(False, False)

ROLES_CODE = "0"
_PART = re.compile(r"([0-9]+):(.*)", re.DOTALL)


def parse_roles(names: Iterable[str]) -> tuple[BookieRole, ...]:
    """The roles with these names, in the order of `BookieRole`.

    Raises:
        ArgumentError: there is no such role.
    """
    wanted = {name.strip() for name in names}
    unknown = wanted - {role.value for role in BookieRole}
    if unknown:
        raise ArgumentError(f"there is no role {min(unknown)!r}; the roles are {', '.join(role.value for role in BookieRole)}")
    return tuple(role for role in BookieRole if role.value in wanted)


def roles_of_units(units: Sequence[str], full: Collection[str] = ()) -> tuple[BookieRole, ...]:
    """The roles in a certificate's organisational units. As in BookKeeper, only the first unit counts. Names of no role are passed over.

    Args:
        full: names that stand for every right where they come first, as BookKeeper's ``authorizedRoles``. It compares no further name.
    """
    parts = (_PART.match(part) for part in (units[0] if units else "").split(";"))
    values = {part[1]: part[2] for part in parts if part is not None}
    names = [name.strip() for name in values.get(ROLES_CODE, "").split(",")]
    if names[0] and names[0] in full:
        return (BookieRole.ADMIN,)
    return tuple(role for role in BookieRole if role.value in names)
