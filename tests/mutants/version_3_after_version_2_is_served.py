"""A connection that has used version 2 may switch back to version 3."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/test_bad_input.py::test_a_connection_speaks_version_3_until_it_sends_something_older_and_then_never_again"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.server.dialects import V3Dialect
    from triplicate.bookie.server.server_connection import ServerConnection

    run = ServerConnection._run

    def look_again(self: ServerConnection, data: bytes) -> None:
        if data[4:5] == b"\x0a":
            self._dialect = V3Dialect()
        run(self, data)

    patch(ServerConnection, "_run", look_again)
