"""`triplicate up` leaves the port for clients of Redis to chance, so that each restart of a node changes it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.cli.supervision.cluster_folder import ClusterFolder

TESTS = ["tests/unit/cli/supervision/test_cluster_folder.py::test_each_node_keeps_a_port_of_its_own_for_clients_of_redis"]
_tables = ClusterFolder._tables


def apply(patch: Callable[[object, str, object], None]) -> None:
    def tables(self: ClusterFolder, *arguments: object) -> dict[str, dict[str, object]]:
        found = _tables(self, *arguments)  # type: ignore[arg-type]
        return {name: section for name, section in found.items() if name != "resp"}

    patch(ClusterFolder, "_tables", tables)
