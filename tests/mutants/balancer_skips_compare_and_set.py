"""The balancer carries out a plan although the placement has changed since it was made."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/hosting/test_balancer.py::test_a_plan_that_an_operator_has_overtaken_is_not_carried_out"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from dataclasses import replace

    from triplicate.client import Client
    from triplicate.metadata import SetData, TreeOperation
    from triplicate.metadata.core.tree import ANY_VERSION
    from triplicate.replica.placed_nodes import placement_change
    from triplicate.sql.hosting import balancer
    from triplicate.sql.hosting.database_directory import DatabaseEntry, DatabaseInfo, encode_info

    def unchecked(client: Client, version: int) -> SetData:
        return replace(placement_change(client, version), version=ANY_VERSION)

    patch(balancer, "placement_change", unchecked)

    def any_version(self: DatabaseEntry, info: DatabaseInfo) -> list[TreeOperation]:
        return [SetData(self.node.path, encode_info(info))]

    patch(DatabaseEntry, "change", any_version)
