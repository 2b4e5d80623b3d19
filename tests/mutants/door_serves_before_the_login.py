"""A request before the login is served, and its connection with it."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/bookie/server/test_doorkeeper.py::test_an_add_before_the_login_stores_nothing",
    "tests/unit/bookie/server/test_doorkeeper.py::test_before_the_login_requests_of_version_2_get_their_own_answer",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.server.door import ANYBODY
    from triplicate.bookie.server.doorkeeper import Doorkeeper

    def serve(self: Doorkeeper, reason: str, reply: object) -> None:
        self._admit(ANYBODY)

    patch(Doorkeeper, "_turn_away", serve)
