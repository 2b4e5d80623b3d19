"""A replication lock whose release runs out of attempts is forgotten: as long as the session lives, nobody else repairs its ledger."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

KIND = "repairs"
CHECKERS = ("progress",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from collections.abc import Iterator
    from contextlib import contextmanager

    from triplicate.metadata.underreplication import UnderreplicationManager

    @contextmanager
    def ending(self: Any, ledger_id: int) -> Iterator[None]:
        try:
            yield
        finally:
            self._claimed.discard(ledger_id)

    patch(UnderreplicationManager, "_ending", ending)
