"""Ledgers of a publish whose outcome is unknown are deleted without a look whether the log lists them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.errors import TriplicateError
    from triplicate.log.logs import Logs

    publish = Logs.publish

    async def publish_or_discard(self: Logs, name: str, ledgers: Sequence[Any], **options: Any) -> Any:
        try:
            return await publish(self, name, ledgers, **options)
        except TriplicateError:
            for item in ledgers:
                await self.client.delete(item if isinstance(item, int) else item.ledger_id)
            raise

    patch(Logs, "publish", publish_or_discard)
