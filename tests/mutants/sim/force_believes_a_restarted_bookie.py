"""A force counts the answer of a bookie that was started anew and has lost what it acknowledged without syncing."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.lanes import EnsembleLanes

    def none_was_lost(self: EnsembleLanes) -> list[int]:
        return []

    patch(EnsembleLanes, "losses", none_was_lost)
