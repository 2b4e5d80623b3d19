"""Our client under measurement, with one more load: appends at a fixed rate without an end."""

from __future__ import annotations

import asyncio

from benchmarks.driving import run_loop, serve_commands
from benchmarks.ledger.our_client import Command, Commands, Rated
from triplicate import Client

ENDLESS = 10**7


class PacedCommands(Commands):
    """The commands of `our_client`, ``pace``, ``latencies`` and ``rest``."""

    def __init__(self, client: Client | None = None) -> None:
        super().__init__(client)
        self._rated: dict[int, tuple[Rated, asyncio.Task[None]]] = {}

    def acknowledged(self, ledger_id: int) -> int:
        """Number of the appends acknowledged since the last ``latencies``."""
        return len(self._rated[ledger_id][0].latencies)

    async def do_pace(self, command: Command) -> Command:
        """Begin to append to a ledger at a rate."""
        ledger_id = command["ledger"]
        rated = Rated(self._writers[ledger_id], command["size"], command["rate"], ENDLESS)
        self._rated[ledger_id] = rated, asyncio.create_task(rated.run())
        return {}

    async def do_latencies(self, command: Command) -> Command:
        """The latencies in nanoseconds, from the instant at which each append was due, of the appends acknowledged since the last call."""
        rated, task = self._rated[command["ledger"]]
        if task.done():
            task.result()  # It has failed.
        latencies, rated.latencies = rated.latencies, []
        return {"latencies_ns": latencies}

    async def do_rest(self, command: Command) -> Command:
        """End the paced appends."""
        _, task = self._rated.pop(command["ledger"])
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return {}


if __name__ == "__main__":
    run_loop(serve_commands(PacedCommands().run))
