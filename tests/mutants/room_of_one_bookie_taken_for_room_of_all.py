"""When one of two overloaded bookies has caught up, further entries are admitted, and the other's backlog grows."""

from collections.abc import Callable

from triplicate.client.write.add_pipeline import AddPipeline

TESTS = [
    "tests/unit/client/write/test_ledger_writer_slow_bookies.py::test_room_at_one_of_two_slow_bookies_is_not_room",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def broken(self: AddPipeline) -> None:
        self.window.is_paused = False
        self.window.admit_waiters()

    patch(AddPipeline, "resume_adds", broken)
