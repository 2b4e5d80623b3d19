"""A decommission removes the cookie although the request that the bookie be read-only was withdrawn during the verdict."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.autorecovery import decommission
from triplicate.metadata import RegisteredBookies

TESTS = [
    "tests/unit/autorecovery/test_decommission_beside_others.py::test_a_bookie_that_is_kept_during_the_verdict_keeps_its_cookie",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def delete(run: decommission._Decommission, bookie_id: str, registered: RegisteredBookies) -> None:
        await run._metadata.cookies.delete(bookie_id)

    patch(decommission._Decommission, "_delete_cookie", delete)
