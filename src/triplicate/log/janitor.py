"""The janitor: applies retention and deletes unreferenced nodes and ledgers of all logs of the cluster, in rounds.

Every database node runs a janitor. A round begins with a compare-and-set of one metadata node, so that one janitor does the round. If its
process dies, another one does the next round. Concurrent rounds would do no harm, since each deletion makes its own checks.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NoReturn, TypeAlias

from triplicate.errors import BadVersion, NodeExists, NoNode, NoSuchLog
from triplicate.log.logs import Logs
from triplicate.log.upkeep.orphans import Sweep, SweepState
from triplicate.metadata import own_paths
from triplicate.runtime import Metrics, sleep

KINDS = ("segments", "pages", "publishers", "ledgers")
ROUND_SHARE = 0.9
"""A round is due after this share of the interval since the last one began, because nodes do not wake at the same moment."""
VERSION = 1

Chore: TypeAlias = Callable[[Logs, str], Awaitable[None]]
"""Other background work on one log, for example rewriting segments; called in each round after the log was swept.

Its arguments are the logs, acting for the log's purpose, and the log's name. One call does a bounded amount of work at a limited rate, and
the next call continues it. Concurrent calls of several processes must do no harm. Errors are traced and do not end the round.
"""


class Janitor:
    """Runs until it is cancelled.

    Args:
        logs: the logs of the cluster, with the settings `janitor_interval_s` (between rounds) and `janitor_pause_s` (between ledgers).
        metrics: counts deletions by kind.
        chores: other work on each log.
    """

    def __init__(self, logs: Logs, metrics: Metrics | None = None, chores: Sequence[Chore] = ()) -> None:
        self._logs = logs
        self._store = logs.store
        self._host = logs.client.host
        self._settings = logs.settings
        self._chores = tuple(chores)
        self._memory = SweepState()
        registry = metrics if metrics is not None else Metrics()
        swept = registry.counter("triplicate_log_swept", "Nodes and ledgers that the janitor of this process deleted, by kind.", ("kind",))
        self._swept = {kind: swept.labels(kind) for kind in KINDS}
        self._rounds = registry.counter("triplicate_log_janitor_rounds", "Rounds that the janitor of this process has done.")
        self._failures = registry.counter("triplicate_log_janitor_failures", "Logs and rounds that the janitor could not finish.")

    async def run(self) -> NoReturn:
        """Do a round whenever one is due. An error ends the round; the next one begins when it is due."""
        random = self._host.entropy.stream("log.janitor")
        while True:
            # Janitors must not all begin at once after the cluster was started, or after an outage.
            await sleep(self._host.clock, self._settings.janitor_interval_s * random.uniform(0.5, 1.0))
            try:
                if await self.claim_round():
                    await self.round()
            except Exception as error:  # noqa: BLE001  a defect must not end the node that the janitor runs in, and others after it
                self._failed("", error)

    async def claim_round(self) -> bool:
        """Whether a round is due and was claimed by this process."""
        tree, path = self._store.tree, own_paths.janitor_path(self._store.own_root)
        data = json.dumps({"by": self._host.name, "v": VERSION}, sort_keys=True, separators=(",", ":")).encode()
        stat = await self._store.persist(lambda: tree.exists(path))
        try:
            if stat is None:
                await tree.create(path, data, parents=True)
            elif await self._store.now_ms() - stat.mtime_ms < self._settings.janitor_interval_s * ROUND_SHARE * 1000:
                return False
            else:
                await tree.set(path, data, stat.version)
        except (NodeExists, BadVersion, NoNode):
            return False
        return True

    async def round(self) -> Mapping[str, int]:
        """Sweep every log, then the ledgers of all logs. Returns the number of deletions by kind."""
        swept = dict.fromkeys(KINDS, 0)
        for name in await self._store.nodes():
            try:
                for kind, count in (await self._logs.sweep_lists(name)).items():
                    swept[kind] += count
                await self._do_chores(name)
            except NoSuchLog:
                continue  # It is being deleted.
            except Exception as error:  # noqa: BLE001  a defect met with one log must not keep the others from being swept
                self._failed(name, error)
            await sleep(self._host.clock, self._settings.janitor_pause_s)
        sweep = Sweep(self._logs.client, self._store, self._settings, None, self._memory)
        swept["ledgers"] = len(await sweep.run(pause_s=self._settings.janitor_pause_s))
        for kind, count in swept.items():
            self._swept[kind].inc(count)
        self._rounds.inc()
        self._host.trace("log.janitor_round", **swept)
        return swept

    async def _do_chores(self, name: str) -> None:
        if not self._chores:
            return
        logs = self._logs.acting_for((await self._store.read(name)).head.purpose)
        for chore in self._chores:
            await chore(logs, name)

    def _failed(self, name: str, error: Exception) -> None:
        self._failures.inc()
        self._host.trace("log.janitor_failed", log=name, error=repr(error))
