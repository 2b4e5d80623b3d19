"""What seeds have found, each forced again: a line says what was wrong."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from tests.simulation.schedule import Schedule
from triplicate.client import Client, LedgerReader
from triplicate.errors import BookieError
from triplicate.runtime import TaskScope
from triplicate.sim import Plan, Strike, run_seed
from triplicate.sim.plays import LedgerLoad
from triplicate.sim.plays.ledger_books import PASSWORD


def test_a_bookie_may_die_in_the_midst_of_its_start() -> None:
    """The simulator: a machine's death within its bookie's own start-up came out of the scenario as an error of its own."""
    struck_while_starting = 0
    for after in range(0, 12, 4):
        first = Strike("kill", 1.0, "bookie-1", lasts_s=0.1)
        second = Strike("crash_at", 1.101, "bookie-1", lasts_s=0.1, options={"operation": "any", "after": after})
        result = run_seed(after, Plan("ledgers", LedgerLoad(entries=20, ledgers=2), (first, second), 2.0))
        assert result.ok, str(result)
        told = [fact.kind for fact in result.facts if fact.node == "bookie-1"]
        kinds = [kind for kind in told if kind in ("host.start", "host.crash", "bookie.replayed")]
        lives = " ".join(kinds).split("host.start")
        struck_while_starting += any("host.crash" in life and "bookie.replayed" not in life for life in lives)
    assert struck_while_starting > 0


def test_a_bookie_that_stops_takes_no_offence_at_requests_for_ledgers_it_has_not_loaded() -> None:
    """Between the end of its tasks and the end of its connections, such a request raised out of the connection's protocol."""
    ledgers, late = 60, 0
    schedule = Schedule()

    async def read(reader: LedgerReader, name: str) -> None:
        with suppress(BookieError):
            await reader.read_from(name, 0)

    async def ask(client: Client) -> None:
        nonlocal late
        readers = []
        for _ in range(ledgers):
            writer = await client.create(password=PASSWORD)
            writer.abandon()
            readers.append(await client.open(writer.ledger_id, password=PASSWORD))
        name = readers[0].metadata.last_segment.ensemble[0]
        bookie = schedule.cluster.bookies[name]
        bookie.crash()
        await bookie.restart()
        await read(readers[0], name)
        # Something to be flushed on the way out, which takes its time.
        pen = await schedule.pen(client, "asker")
        pen.send(20)
        await pen.settled()
        stopping = schedule.world.loop.begin(bookie.stop(), name="stop")
        async with TaskScope("questions") as scope:
            for reader in readers[1:]:
                late += not stopping.done()
                scope.spawn(read(reader, name), name="question")
                await asyncio.sleep(0.0005)
        await stopping
        bookie.crash()

    async def script() -> None:
        await schedule.begin("asker", ask)

    schedule.play(script)
    assert late > 0
    assert not schedule.world.loop.failures
