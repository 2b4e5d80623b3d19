"""The bookie stores entries whose digest does not match."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/server/test_request_processor_v2.py::test_a_wrong_digest_is_refused_named_and_not_stored"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.ledger import DigestVerifier

    patch(DigestVerifier, "verify", lambda self, body: True)
    patch(DigestVerifier, "verify_all", lambda self, bodies: True)
