"""Ledgers of a publish with unknown outcome are deleted without checking whether the log lists them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.upkeep import orphans

    async def at_once(client: Any, store: Any, name: str, ledger_id: int, **evidence: Any) -> bool:
        await client.delete(ledger_id)
        return True

    patch(orphans, "delete_unlisted", at_once)
