"""The watch of a client ends before the wider one has begun: if that fails, the channels before are silent for ever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = ["tests/unit/kv/resp/test_keyspace_notifications.py::test_a_subscription_that_fails_changes_nothing_for_the_client"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.kv.resp.keyspace_notifications import Notifications

    right = Notifications._watch_more

    async def close_first(self: Notifications, store: Any) -> None:
        if self._watch is not None and not self._channels.prefix.startswith(self._prefix):
            await self._watch.aclose()
        await right(self, store)

    patch(Notifications, "_watch_more", close_first)
