"""A bookie that failed is sent entries again after its pause without being asked, so one that hangs holds up the writer each time."""

from collections.abc import Callable

from triplicate.client.write.failed_bookies import FailedBookies

TESTS = [
    "tests/unit/client/test_absent_bookies.py::test_a_bookie_that_hangs_holds_up_nobody_a_second_time",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def broken(self: FailedBookies, bookie_id: str) -> None:
        known = self._known[bookie_id]
        known.is_back = True
        self._news()

    patch(FailedBookies, "ask", broken)
