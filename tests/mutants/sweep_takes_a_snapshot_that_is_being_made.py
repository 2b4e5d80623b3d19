"""The sweep of orphans deletes the ledger of a snapshot that takes longer than an hour to make."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.ledger import LedgerMetadata
from triplicate.log.upkeep.orphans import Sweep

TESTS = ["tests/unit/log/test_janitor.py::test_a_snapshot_that_takes_hours_is_not_swept_before_it_is_listed"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    grace_ms = Sweep._grace_ms

    def shorter(self: Sweep, metadata: LedgerMetadata) -> float:
        is_snapshot = metadata.custom.get("component") == b"snapshot"
        return self._settings.orphan_grace_s * 1000 if is_snapshot else grace_ms(self, metadata)

    patch(Sweep, "_grace_ms", shorter)
