"""Entry logs are finished before their footers grow beyond a bound."""

from __future__ import annotations

import pytest

from tests.unit.bookie.bookie_rig import Rig, run_rig
from tests.unit.bookie.crash_rig import codec
from triplicate.bookie.storage import entry_log_writer
from triplicate.wire import Status


def test_an_entry_log_of_many_small_runs_is_finished_before_its_footer_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_log_writer, "BLOCKS_MAX", 20)

    async def body(rig: Rig) -> None:
        client = await rig.connect()
        for round_number in range(3):
            for ledger_id in range(5, 20):
                assert await client.add(codec(ledger_id), round_number) is Status.OK
            await rig.bookie.storage.flush()
        logs = [name for name in rig.files("/data/ledgers/current") if name.endswith(".entries")]
        assert len(logs) == 3
        for ledger_id in range(5, 20):
            for entry_id in range(3):
                assert (await client.read(ledger_id, entry_id)).status is Status.OK

    run_rig(body, flush_interval_s=3600.0)
