"""A connection always reads the bookie's registration first, so none can be made while the metadata do not answer."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/client/connection/test_connector.py::test_appends_and_reads_go_on_over_new_connections_while_the_metadata_are_away[silent]",
    "tests/unit/client/connection/test_connector.py::test_a_bookie_without_a_registration_that_serves_is_reached",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.metadata import BookieRegistry, Location

    async def registered(self: BookieRegistry, bookie_id: str, wait_s: float) -> Location:
        return Location(await self.resolve(bookie_id), True)

    patch(BookieRegistry, "locate", registered)
