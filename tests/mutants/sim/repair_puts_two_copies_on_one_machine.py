"""A worker chooses any bookie for lost copies, also on a machine that has a copy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

KIND = "repairs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery import ledger_repair
    from triplicate.ledger import PlacementRules, replace_bookies
    from triplicate.ledger.placement.ensemble_choice import RandomSource

    def anywhere(
        ensemble: Sequence[str],
        failed: Collection[int],
        writable: Iterable[str],
        rng: RandomSource,
        avoid: Collection[str] = (),
        rules: PlacementRules | None = None,
    ) -> tuple[str, ...]:
        return replace_bookies(ensemble, failed, writable, rng, avoid)

    patch(ledger_repair, "replace_bookies", anywhere)
