"""A bookie keeps something of every connection that it has refused, so that a flood uses up its memory."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/bookie/server/test_doorkeeper_flood.py::test_a_flood_leaves_nothing_behind_and_an_honest_client_is_served[silent]",
]


def apply(patch: Any) -> None:
    from triplicate.bookie.server.doorkeeper import Doorkeeper

    end, kept = Doorkeeper.end, []

    def keep(self: Doorkeeper) -> None:
        kept.append(self)
        end(self)

    patch(Doorkeeper, "end", keep)
