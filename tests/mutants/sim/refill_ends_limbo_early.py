"""The limbo of a bookie with replaced disks ends although none of its ledgers was refilled."""

from __future__ import annotations

from collections.abc import Callable

KIND = "repairs"
CHECKERS = ("limbo_ends_with_the_refill", "replaced_bookies_deny_nothing")


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery import LedgerRepair, bookie_refill

    async def repairs_nothing(*arguments: object) -> tuple[LedgerRepair, ...]:
        return ()

    patch(bookie_refill._Rounds, "run", repairs_nothing)
