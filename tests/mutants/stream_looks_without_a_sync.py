"""A stream reads the log's end from a metadata server that may be behind, and reports no further records."""

from collections.abc import Callable

from triplicate.spark.cluster import access
from triplicate.spark.cluster.progress import LogState

TESTS = ["tests/unit/spark/cluster/test_access.py::test_what_was_acknowledged_before_is_read_though_a_server_is_behind[further]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def broken(self: access.LogStatePoller) -> dict[str, LogState]:
        with access.logs(self._metadata_uri, self._ledger_password) as logs:
            self._states = {name: logs.state(name) for name in self._names}
        return dict(self._states)

    patch(access.LogStatePoller, "states", broken)
