"""Tasks of a bookie that may fail without anybody's data being in danger: they begin again after a pause.

Garbage collection and compaction decide by what metadata and index say. All bookies of a cluster run the same code on the same metadata,
so an error there that nobody foresaw would end all of them at once. It is traced and counted, and the task tries again. Errors of disks and
storage are OSErrors (`Storage` makes them so) and end the bookie as before.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from triplicate.bookie.bookie_metrics import BookieMetrics
from triplicate.runtime import Backoff, Host, sleep

FIRST_PAUSE_S = 10.0
LONGEST_PAUSE_S = 3600.0


async def keep_running(host: Host, metrics: BookieMetrics, name: str, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a task that has no end. After an error it begins again, each time after a longer pause.

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
