"""A name of `authorized_roles` allows everything at any place of a certificate's roles, unlike at BookKeeper's bookies."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

TESTS = ["tests/unit/security/core/test_bookie_rights.py::test_the_first_unit_holds_the_roles"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.security.core import bookie_rights
    from triplicate.security.core.bookie_rights import BookieRole

    roles_of_units = bookie_rights.roles_of_units

    def by_any(units: Sequence[str], full: Collection[str] = ()) -> tuple[BookieRole, ...]:
        names = (units[0] if units else "").partition(":")[2].split(",")
        return (BookieRole.ADMIN,) if any(name.strip() in full for name in names) else roles_of_units(units, full)

    patch(bookie_rights, "roles_of_units", by_any)
