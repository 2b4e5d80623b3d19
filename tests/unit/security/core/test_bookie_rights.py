"""Roles and rights, and the roles in a certificate's organisational unit as BookKeeper reads it."""

from __future__ import annotations

import pytest

from triplicate.errors import ArgumentError
from triplicate.security.core.bookie_rights import FULL_RIGHTS, NO_RIGHTS, BookieRole, Rights, parse_roles, roles_of_units

READ, WRITE, ADMIN = BookieRole


@pytest.mark.parametrize(
    ("roles", "rights"),
    [
        ((), NO_RIGHTS),
        ((READ,), Rights(True, False)),
        ((WRITE,), Rights(False, True)),
        ((READ, WRITE), FULL_RIGHTS),
        ((ADMIN,), FULL_RIGHTS),
    ],
)
def test_roles_give_their_rights(roles: tuple[BookieRole, ...], rights: Rights) -> None:
    assert Rights.of(roles) == rights
    assert rights.are_full is (rights == FULL_RIGHTS)


def test_roles_are_parsed_by_name() -> None:
    assert parse_roles([" write", "read"]) == (READ, WRITE)
    with pytest.raises(ArgumentError, match="there is no role 'owner'; the roles are read, write, admin"):
        parse_roles(["read", "owner"])


@pytest.mark.parametrize(
    ("units", "roles"),
    [
        ((), ()),
        (("0:read",), (READ,)),
        (("0: read , write ;1:cluster",), (READ, WRITE)),
        (("1:admin;0:read",), (READ,)),
        (("0:read;0:write",), (WRITE,)),
        (("admin",), ()),
        (("x0:admin",), ()),
        (("1:admin",), ()),
        (("other", "0:admin"), ()),
        (("0:guest,read",), (READ,)),
        (("0:operators,guest",), (ADMIN,)),
        (("0:, operators",), ()),
        (("0:guest,operators",), ()),
        (("0:read,operators",), (READ,)),
        (("0:READ",), ()),
        (("0:",), ()),
        ((";;0:write",), (WRITE,)),
    ],
)
def test_the_first_unit_holds_the_roles(units: tuple[str, ...], roles: tuple[BookieRole, ...]) -> None:
    assert roles_of_units(units, ("operators",)) == roles
