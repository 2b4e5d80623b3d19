"""PLAIN is accepted without TLS."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/bookie/server/test_doorkeeper_tls.py::test_plain_is_accepted_inside_tls_only",
    "tests/unit/bookie/server/test_door_policy.py::test_plain_and_channel_binding_are_offered_inside_tls_only",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.server.door_policy import DoorPolicy

    def offered(self: DoorPolicy, *, has_tls: bool) -> tuple[str, ...]:
        return self.mechanisms

    patch(DoorPolicy, "offered", offered)
