"""A stream asked twice within an interval repeats its last answer, so a query believes that it has read everything."""

from collections.abc import Callable

from triplicate.spark.cluster import access
from triplicate.spark.cluster.progress import LogState

TESTS = [
    "tests/unit/spark/cluster/test_access_log_state_poller.py::test_logs_are_looked_at_once_in_an_interval_and_what_was_published_before_is_seen"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    look = access.LogStatePoller.states

    def broken(self: access.LogStatePoller) -> dict[str, LogState]:
        now: float = vars(access)["time"].monotonic()
        if self._states is not None and now < self._due_at:
            return self.last_states()
        return look(self)

    patch(access.LogStatePoller, "states", broken)
