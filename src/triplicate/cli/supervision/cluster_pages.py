"""``/health``, ``/ready`` and ``/metrics`` of a whole local cluster, served by a thread of `triplicate up`."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from triplicate.cli.process.serving import metrics_url, run_loop, start_metrics
from triplicate.cli.supervision.cluster_view import Answers
from triplicate.config import ProcessSettings
from triplicate.errors import EnvironmentFault
from triplicate.runtime import Metrics, ProbeAnswer, real_host

SILENCE_MAX_S = 10.0
"""If `up` has not checked its processes for this time, it counts as hanging."""
END_LIMIT_S = 5.0


class Serves(Enum):
    """The state of a process, as far as the probes know it."""

    NOT = "not"
    WITHOUT_PROBES = "without probes"
    """For example ZooKeeper."""
    WITH_PROBES = "with probes"


class ClusterState:
    """The state of `up`'s processes. `up`'s thread calls `update`, the pages' thread calls the probes. Shared values are replaced as a
    whole.

    Args:
        now: a monotonic clock, in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._updated_at = now()
        self._reasons: dict[str, list[str]] = {}

    def update(self, members: Mapping[str, Serves], answers: Answers) -> None:
        """Record the present state.

        Args:
            members: all processes by name.
            answers: the last answers of the processes.
        """
        self._reasons = {name: _reasons(serves, answers.get(name)) for name, serves in members.items()}
        self._updated_at = self._now()

    def health(self) -> ProbeAnswer:
        silent_s = self._now() - self._updated_at
        reasons = [f"`up` has not checked its processes for {silent_s:.0f} s"] if silent_s > SILENCE_MAX_S else []
        return ProbeAnswer(not reasons, {"healthy": not reasons, "process": "up", "reasons": reasons})

    def ready(self) -> ProbeAnswer:
        """``/ready``: ready if every process is ready."""
        processes = self._reasons
        reasons = [f"{name}: {reason}" for name, found in processes.items() for reason in found]
        ready = bool(processes) and not reasons
        facts = {name: not found for name, found in processes.items()}
        return ProbeAnswer(ready, {"ready": ready, "process": "up", "reasons": reasons, "processes": facts})

    def ready_count(self) -> int:
        return sum(not found for found in self._reasons.values())


def _reasons(serves: Serves, answer: Mapping[str, Any] | None) -> list[str]:
    if serves is Serves.NOT:
        return ["does not run"]
    if serves is Serves.WITHOUT_PROBES:
        return []
    if answer is None:
        return ["does not answer"]
    return [] if answer.get("ready") else [str(reason) for reason in answer.get("reasons", [])] or ["is not ready"]


class ClusterPages:
    """Use it as a context manager. `url` is the address of the pages.

    Raises:
        EnvironmentFault: the port cannot be opened.
    """

    def __init__(self, state: ClusterState, metrics: Metrics, settings: ProcessSettings) -> None:
        self.url = ""
        self._state = state
        self._metrics = metrics
        self._settings = settings
        self._opened = threading.Event()
        self._failure: EnvironmentFault | None = None
        self._end: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._run, name="cluster-pages", daemon=True)

    def __enter__(self) -> ClusterPages:
        self._thread.start()
        self._opened.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._thread.join(END_LIMIT_S)

    def _run(self) -> None:
        try:
            run_loop(self._serve())
        except EnvironmentFault as error:
            self._failure = error
        finally:
            self._opened.set()

    async def _serve(self) -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        pages = {"/health": self._state.health, "/ready": self._state.ready}
        listener = await start_metrics(real_host("up"), self._metrics, self._settings, pages)
        self.url = metrics_url(*listener.address)
        self._end = lambda: _wake(loop, ended)
        self._opened.set()
        try:
            await ended.wait()
        finally:
            await listener.close()


def _wake(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    loop.call_soon_threadsafe(ended.set)
