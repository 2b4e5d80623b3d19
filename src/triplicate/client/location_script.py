"""The client's script for network locations. Source: BookKeeper `ScriptBasedMapping`."""

from __future__ import annotations

from collections.abc import Iterable

from triplicate.runtime import Host, run_program, shielded

ARGUMENTS_MAXIMUM = 100
"""Machines in one call."""
KNOWN_S = 600.0
"""How long an answer is used, in seconds."""
RETRY_S = 60.0
"""Pause after a failed call, in seconds. Machines without an answer have the default location meanwhile."""


class LocationScript:
    """Locations of machines by the program of the setting ``placement_script``, kept for a while.

    Args:
        path: the program; empty for none.
        limit_s: time for one call, in seconds.
    """

    def __init__(self, host: Host, path: str, limit_s: float) -> None:
        self.locations: dict[str, str] = {}
        """By machine, as the program printed them."""
        self.failure = ""
        """Why machines of the last `resolve` have no answer, or only an old one; empty if all have a new one."""
        self._failures: dict[str, str] = {}
        """Why the last call for a machine failed, by machine."""
        self._host = host
        self._path = path
        self._limit_s = limit_s
        self._expires: dict[str, float] = {}
        """When to call again for a machine, in seconds of the monotonic clock."""

    async def resolve(self, machines: Iterable[str]) -> None:
        """Call the program for the machines whose answers are missing or old. A failure is traced, and the last answers stay."""
        if not self._path:
            return
        now, wanted = self._host.clock.monotonic(), set(machines)
        due = [machine for machine in sorted(wanted) if self._expires.get(machine, 0.0) <= now]
        for first in range(0, len(due), ARGUMENTS_MAXIMUM):
            await self._call(due[first : first + ARGUMENTS_MAXIMUM])
        # Machines are asked in groups, so one of several calls may have failed, and at another time.
        reasons = dict.fromkeys(self._failures[machine] for machine in sorted(wanted) if machine in self._failures)
        self.failure = "; ".join(reasons)

    async def _call(self, machines: list[str]) -> None:
        expires_s = KNOWN_S
        try:
            worker = self._host.new_worker("placement script")
            try:
                words = (await worker.run(run_program, self._path, machines, self._limit_s)).split()
            finally:
                await shielded(worker.close())
            if len(words) != len(machines):
                raise OSError(f"{self._path} printed {len(words)} locations for {len(machines)} machines")
        except OSError as error:
            expires_s = RETRY_S
            self._failures.update(dict.fromkeys(machines, f"placement_script: {error}"))
            self._host.trace("client.placement_script_failed", error=str(error), machines=",".join(machines))
        else:
            for machine in machines:
                self._failures.pop(machine, None)
            self.locations.update(zip(machines, words, strict=True))
        now = self._host.clock.monotonic()
        self._expires.update(dict.fromkeys(machines, now + expires_s))
