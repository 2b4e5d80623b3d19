"""The properties of a writer as its users see them."""

from __future__ import annotations

from tests.unit.log.fake import Stage, play
from tests.waiting import eventually


def test_a_writer_knows_for_how_long_its_oldest_entry_has_waited() -> None:
    async def scene(stage: Stage) -> None:
        logs, clock = stage.logs(), stage.host.clock
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            assert writer.waited_s(clock.monotonic()) == 0
            ledger = stage.bookies.ledger(writer.ledger_id)
            ledger.held = []
            began_s = clock.monotonic()
            first = writer.append_entry_nowait([b"a"])
            await eventually(lambda: writer.waited_s(clock.monotonic()) > 0.05)
            second = writer.append_entry_nowait([b"b"])
            assert writer.waited_s(clock.monotonic()) > 0.05, "the oldest counts"
            (acknowledged, entry_id), *held = ledger.held
            acknowledged.set_result(entry_id)
            await first
            assert 0 < writer.waited_s(clock.monotonic()) < clock.monotonic() - began_s - 0.05, "the second came later"
            ledger.held = None
            for acknowledged, entry_id in held:
                acknowledged.set_result(entry_id)
            await second
            assert writer.waited_s(clock.monotonic()) == 0

    play(scene)
