"""The probe of a peer asks for TLS, behind which a server expects a handshake."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/sql/pg/protocol/test_client_startup.py::test_peers_probe_a_server_that_requires_tls",
]


def apply(patch: Any) -> None:
    from triplicate.replica import failure_detector

    patch(failure_detector, "PROBE", bytes.fromhex("0000000804d2162f"))
