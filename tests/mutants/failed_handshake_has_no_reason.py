"""A failed TLS handshake is a connection that did not come about, without the reason."""

from __future__ import annotations

from typing import Any

TESTS = ["tests/unit/client/connection/test_handshake.py::test_a_bookie_that_is_not_proven_is_refused_with_the_reason"]


def apply(patch: Any) -> None:
    from triplicate.client.connection import handshake

    patch(handshake, "reason_of_tls_failure", lambda error: "try again")
