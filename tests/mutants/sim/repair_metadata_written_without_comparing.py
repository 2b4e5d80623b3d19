"""A worker writes the metadata that it has read before the copies were made, over any newer version."""

from __future__ import annotations

from collections.abc import Callable

KIND = "repairs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery.core.fragments import LedgerFragment, with_copies_at
    from triplicate.autorecovery.ledger_repair import RepairRun
    from triplicate.errors import BadVersion
    from triplicate.metadata import Versioned

    async def name_over_any_version(self: RepairRun, found: Versioned, fragment: LedgerFragment, target: str, *, has_writer: bool) -> None:
        changed = with_copies_at(found.value, fragment, target, has_writer=has_writer)
        version = found.version
        while changed is not None:
            try:
                await self._ledgers.update(self._ledger_id, changed, version)
            except BadVersion:
                version = (await self._ledgers.get(self._ledger_id)).version
            else:
                self.fragments += 1
                return

    patch(RepairRun, "_name_target", name_over_any_version)
