"""A client logs in with the same nonce each time, so that a recorded login of a server can be repeated."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/security/core/test_sasl_client.py::test_a_recorded_login_of_a_server_is_of_no_use_again",
    "tests/unit/security/test_sasl_login.py::test_each_connection_has_a_login_and_a_nonce_of_its_own",
]


def apply(patch: Any) -> None:
    from triplicate.security.core import sasl_client

    patch(sasl_client, "b64encode", lambda nonce: b"always the same")
