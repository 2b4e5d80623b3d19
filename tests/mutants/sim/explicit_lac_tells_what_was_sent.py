"""The explicit last-add-confirmed names the last entry that was sent."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.write.explicit_lac import ExplicitLacUpdater

    send = ExplicitLacUpdater._send

    def send_all(self: ExplicitLacUpdater, last_add_confirmed: int) -> None:
        send(self, self._tracker.last_add_pushed)

    patch(ExplicitLacUpdater, "_send", send_all)
