"""A prefix of the proof of DIGEST-MD5 is enough."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

TESTS = ["tests/unit/bookie/server/test_doorkeeper_attacks.py::test_a_prefix_of_the_proof_is_no_proof"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.security.core import sasl_server

    patch(sasl_server, "hmac", SimpleNamespace(compare_digest=lambda expected, given: expected.startswith(given)))
