"""A bookie answers reads of the last-add-confirmed with the last stored entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.storage import Storage

    for name in ("store", "store_one"):
        patch(Storage, name, and_confirm(getattr(Storage, name)))


def and_confirm(store: Callable[..., None]) -> Callable[..., None]:
    """Storing, and what was stored is confirmed."""

    def stored(self: object, handle: Any, *what: object) -> None:
        store(self, handle, *what)
        handle.learn_lac(handle.last_entry_id)

    return stored
