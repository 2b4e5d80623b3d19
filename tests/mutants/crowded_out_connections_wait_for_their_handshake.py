"""A connection that was crowded out while it waits for its TLS handshake costs a task and its memory until its turn comes."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/bookie/server/test_doorkeeper_attacks.py::test_connections_that_were_crowded_out_keep_no_other_handshake_waiting",
]


def apply(patch: Any) -> None:
    from triplicate.bookie.server.doorkeeper import Doorkeeper
    from triplicate.runtime import resolve

    end = Doorkeeper.end

    def leave_waiting(self: Doorkeeper) -> None:
        if self._turn is not None:
            when = self._door.host.clock.monotonic() + 60.0
            self._door.host.clock.call_at(when, resolve, self._turn, None)
            self._turn = None
            self._door.handshakes.give_back()
        end(self)

    patch(Doorkeeper, "end", leave_waiting)
