"""A force succeeds as soon as all bookies but one have synced."""

from collections.abc import Callable

from triplicate.client.write.force import Force
from triplicate.wire import ForceResponse, Status

TESTS = [
    "tests/unit/client/write/test_force.py::test_force_needs_every_bookie_of_the_ensemble",
    "tests/unit/client/write/test_force.py::test_a_bookie_that_stays_silent_fails_the_force_in_time",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def broken(self: Force, bookie_id: str, response: object, error: object) -> None:
        if isinstance(response, ForceResponse) and response.status == Status.OK:
            self._missing.pop(bookie_id, None)
        if len(self._missing) <= 1 and self._ended is not None:
            ended, self._ended = self._ended, None
            ended(self)

    patch(Force, "_answered", broken)
