"""An entry that bookies acknowledged without having synced it counts as confirmed."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.adds import LedgerAdds

    confirm = LedgerAdds.confirm

    def broken(self: LedgerAdds) -> None:
        confirm(self)
        if self._tracker.last_add_confirmed > self.last_add_confirmed:
            self._move_last_confirmed(self._tracker.last_add_confirmed, self._acknowledged_bytes)

    patch(LedgerAdds, "confirm", broken)
