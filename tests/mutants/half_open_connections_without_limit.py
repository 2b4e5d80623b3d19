"""Connections whose clients do not log in accumulate, at the doors of the bookie and of the node."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/security/core/test_half_open.py::test_the_oldest_connection_of_an_address_makes_room_for_another",
    "tests/unit/bookie/server/test_doorkeeper_attacks.py::test_a_flood_of_idle_connections_is_bounded_and_does_not_keep_honest_clients_out",
    "tests/unit/kv/resp/test_resp_connections_half_open.py::test_a_flood_of_connections_is_bounded_and_a_client_logs_in_meanwhile",
    "tests/unit/sql/pg/protocol/test_client_connections_half_open.py::test_a_flood_of_connections_is_bounded_and_a_client_logs_in_meanwhile",
    "tests/unit/sql/pg/protocol/test_server.py::test_connections_that_say_nothing_are_bounded",
]


def apply(patch: Any) -> None:
    from triplicate.security import HalfOpenConnections

    add = HalfOpenConnections.add

    def keep(self: HalfOpenConnections[Any], connection: Any, address: str) -> Any:
        self._total = self._for_address = 1_000_000
        return add(self, connection, address)

    patch(HalfOpenConnections, "add", keep)
