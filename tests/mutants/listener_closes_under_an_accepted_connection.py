"""A listener that closes does not wait until the connections that it has accepted have their transports."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    (
        "tests/unit/runtime/test_real.py"
        "::test_a_connection_accepted_just_before_the_listener_closes_reaches_its_protocol_or_is_reset[2-new_event_loop0]"
    )
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.runtime.real import RealListener

    async def close(self: RealListener) -> None:
        self._server.close()

    patch(RealListener, "close", close)
