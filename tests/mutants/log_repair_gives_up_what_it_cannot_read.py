"""A repair of a log takes a ledger that the trash has in a later format for one that is gone for good."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = ["tests/unit/log/upkeep/test_repair.py::test_what_a_later_release_may_bring_back_is_not_given_up"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.upkeep import repair

    trashed = repair._trashed

    async def gone(client: Any, store: Any, ledger_id: int) -> tuple[int | None, bool]:
        return (await trashed(client, store, ledger_id))[0], False

    patch(repair, "_trashed", gone)
