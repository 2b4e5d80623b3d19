"""The sessions of logs' writers are not looked at, so an idle one is fenced after the grace period."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.autorecovery import ledger_repair
from triplicate.autorecovery.core.writer_presence import WriterPresence

TESTS = ["tests/unit/autorecovery/test_recovery_pass.py::test_an_idle_writer_of_a_log_is_not_fenced_while_its_session_lives"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def presence(run: object, metadata: object, lost: object) -> WriterPresence:
        return WriterPresence.GONE

    patch(ledger_repair.RepairRun, "_presence", presence)
