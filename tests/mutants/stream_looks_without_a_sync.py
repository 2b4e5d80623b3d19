"""A stream reads the log's end from a metadata server that may be behind, and reports no further records."""

from collections.abc import Callable, Iterable

from triplicate.spark.cluster import access
from triplicate.spark.cluster.progress import LogState

TESTS = ["tests/unit/spark/cluster/test_access.py::test_what_was_acknowledged_before_is_read_though_a_server_is_behind[further]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def broken(self: access.LogAccess, names: Iterable[str], matches: object = None) -> dict[str, LogState]:
        return self.states(names)

    patch(access.LogAccess, "synced_states", broken)
