"""Connections that are not admitted are counted and never closed."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/bookie/server/test_doorkeeper_attacks.py::test_a_flood_of_idle_connections_is_bounded_and_does_not_keep_honest_clients_out",
    "tests/unit/bookie/server/test_half_open.py::test_the_oldest_is_dropped_beyond_the_limit",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.server.half_open import Guest, HalfOpen

    join = HalfOpen.join

    def keep(self: HalfOpen, guest: Guest) -> Guest | None:
        self._total = self._per_address = 1_000_000
        return join(self, guest)

    patch(HalfOpen, "join", keep)
