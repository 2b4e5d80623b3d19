"""A force counts the answer of a bookie that restarted and lost entries which it had acknowledged before their sync."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.lanes import EnsembleLanes

    def none_was_lost(self: EnsembleLanes) -> list[int]:
        return []

    patch(EnsembleLanes, "losses", none_was_lost)
