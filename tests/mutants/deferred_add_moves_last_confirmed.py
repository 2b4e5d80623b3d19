"""An entry that bookies acknowledged without having synced it counts as confirmed."""

from collections.abc import Callable

from triplicate.client.adds import LedgerAdds

TESTS = [
    "tests/unit/client/test_force.py::test_adds_with_deferred_sync_are_acknowledged_and_only_force_confirms_them",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    confirm = LedgerAdds.confirm

    def broken(self: LedgerAdds) -> None:
        confirm(self)
        self._move_last_confirmed(self._tracker.last_add_confirmed, self._acknowledged_bytes)

    patch(LedgerAdds, "confirm", broken)
