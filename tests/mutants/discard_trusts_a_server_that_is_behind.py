"""Ledgers are discarded on the evidence of a head that may be stale."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log.store.head_store import HeadStore
from triplicate.log.upkeep import orphans

TESTS = ["tests/unit/log/publishing/test_publication.py::test_discarding_does_not_trust_a_server_that_is_behind"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def no_sync(store: HeadStore) -> None:
        return

    patch(HeadStore, "sync", no_sync)
    patch(orphans, "unchanged", lambda store, name, stored: [])
