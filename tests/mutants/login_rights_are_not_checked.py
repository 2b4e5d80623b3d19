"""A proven role logs in although it may not, or its password has expired."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/sql/pg/protocol/test_role_proof.py::test_a_right_that_is_missing_is_told_only_to_the_owner_of_the_password",
    "tests/unit/sql/pg/protocol/test_client_startup.py::test_certificates_of_clients_are_demanded_by_the_rule[role-berta-False]",
]


def apply(patch: Any) -> None:
    from triplicate.sql.pg.protocol.role_proof import RoleProver

    patch(RoleProver, "_check_rights", lambda self, stream, login: None)
