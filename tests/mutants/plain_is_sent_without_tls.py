"""A client sends its password by PLAIN on a connection in clear."""

from __future__ import annotations

from typing import Any

TESTS = ["tests/unit/security/test_sasl_login.py::test_plain_never_begins_on_a_connection_without_tls"]


def apply(patch: Any) -> None:
    from triplicate.security import sasl_login

    begin = sasl_login.SaslLogin.begin

    def careless(self: Any, connection: Any) -> Any:
        return begin(self, sasl_login.LoginConnection(connection.server, is_protected=True, certificate=connection.certificate))

    patch(sasl_login.SaslLogin, "begin", careless)
