"""A force succeeds as soon as the first bookie of the ensemble has synced."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.write.force import Force
    from triplicate.wire import ForceResponse, Status

    answered = Force._answered

    def first_is_enough(self: Force, bookie_id: str, response: object, error: object) -> None:
        if isinstance(response, ForceResponse) and response.status == Status.OK:
            for other in [name for name in self._missing if name != bookie_id]:
                self._missing.pop(other, None)
        answered(self, bookie_id, response, error)  # type: ignore[arg-type]

    patch(Force, "_answered", first_is_enough)
