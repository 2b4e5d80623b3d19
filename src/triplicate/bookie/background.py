"""Runs tasks whose failure endangers no data, and restarts them after a pause.

Garbage collection and compaction depend on metadata and index. All bookies of a cluster run the same code on the same metadata, so an
unexpected error there would end all of them at once. The error is traced and counted, and the task is restarted. Errors of disks and
storage are OSErrors (`Storage` converts them) and end the bookie.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from triplicate.bookie.bookie_metrics import BookieMetrics
from triplicate.runtime import Backoff, Host, sleep

FIRST_PAUSE_S = 10.0
LONGEST_PAUSE_S = 3600.0


async def keep_running(host: Host, metrics: BookieMetrics, name: str, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run an endless task. After an error it is restarted, each time after a longer pause.

    Raises:
        OSError: the disk or the storage failed.
    """
    pause = Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S, host.entropy.stream(f"bookie {name}"))
    while True:
        began = host.clock.monotonic()
        try:
            await run()
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001  see the module's text
            if host.clock.monotonic() - began >= LONGEST_PAUSE_S:
                pause.reset()
            pause_s = pause.next_s()
            metrics.task_failures.labels(name).inc()
            host.trace("bookie.task_failed", task=name, error=repr(error), again_in_s=pause_s)
            await sleep(host.clock, pause_s)
