"""Beyond the total of half-open connections the oldest of all makes room, also where one address has most of them."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/security/core/test_half_open.py::test_a_flood_from_one_address_replaces_its_own_connections",
]


def apply(patch: Any) -> None:
    from triplicate.security import HalfOpenConnections

    add = HalfOpenConnections.add

    def unfair(self: HalfOpenConnections[Any], connection: Any, address: str) -> Any:
        if len(self) < self._total:
            return add(self, connection, address)
        oldest = next(iter(self))
        self.remove(oldest)
        add(self, connection, address)
        return oldest

    patch(HalfOpenConnections, "add", unfair)
