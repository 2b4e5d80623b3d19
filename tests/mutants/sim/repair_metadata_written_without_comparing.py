"""A worker writes the metadata that it has read before the copies were made, over any newer version."""

from __future__ import annotations

from collections.abc import Callable, Sequence

KIND = "repairs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery.core.fragments import LedgerFragment, with_copies_moved
    from triplicate.autorecovery.ledger_repair import RepairRun
    from triplicate.errors import BadVersion
    from triplicate.metadata import Versioned

    async def name_over_any_version(
        self: RepairRun, found: Versioned, moves: Sequence[tuple[LedgerFragment, str]], *, has_writer: bool
    ) -> None:
        changed = with_copies_moved(found.value, moves, has_writer=has_writer)
        version = found.version
        while changed is not None:
            try:
                await self._ledgers.update(self._ledger_id, changed, version)
            except BadVersion:
                version = (await self._ledgers.get(self._ledger_id)).version
            else:
                self.fragments += len(moves)
                return

    patch(RepairRun, "_name_targets", name_over_any_version)
