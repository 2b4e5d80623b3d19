"""The last batch of a forgotten publisher can be published again."""

from __future__ import annotations

from collections.abc import Callable

KIND = "logs"
CHECKERS = ("batches_are_there_once",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.publishing import publication
    from triplicate.log.store.head_store import HeadStore

    async def whatever_it_was(store: HeadStore, name: str, application: str, batch: int) -> None:
        return None

    patch(publication, "check_not_forgotten", whatever_it_was)
