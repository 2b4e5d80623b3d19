"""Requests ``/ready`` from the processes of a local cluster, in its own thread: a hanging process must not block `triplicate up`."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from triplicate.cli.process.page_access import PageAddress, read_page
from triplicate.cli.supervision.cluster_view import Answers
from triplicate.cli.supervision.local_processes import LocalCluster
from triplicate.errors import ConfigError

INTERVAL_S = 1.0
TIMEOUT_S = 2.0
PATIENT_S = 5.0
"""Limits of one answer, and of one from a process that did not answer the last time."""
AT_ONCE = 16
"""Processes that are asked at the same time: a silent one delays no other."""
ANSWER_BYTES_MAX = 1024 * 1024


class Prober:
    """Use it as a context manager. `targets` and `answers` are replaced as a whole, so both threads see one state or the next.

    Args:
        answers: the answers of an earlier round.
    """

    def __init__(self, answers: Answers) -> None:
        self.targets: dict[str, PageAddress] = {}
        """Where the pages are, by process."""
        self.answers = answers
        """The answers of the newest round; see `cluster_view.Answers`."""
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="prober", daemon=True)

    def __enter__(self) -> Prober:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()

    def _run(self) -> None:
        while not self._end.wait(INTERVAL_S):
            self.answers = probe_all(self.targets, self.answers)


def targets_of(cluster: LocalCluster) -> dict[str, PageAddress]:
    """Where the pages of serving processes are."""
    return {name: PageAddress.from_facts(one.facts) for name, one in cluster.running.items() if "metrics" in one.facts}


def probe_all(targets: Mapping[str, PageAddress], before: Answers) -> Answers:
    """The answers of processes.

    Args:
        before: their last answers.
    """
    limits = [PATIENT_S if before.get(name, {}) is None else TIMEOUT_S for name in targets]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(targets, pool.map(probe, targets.values(), limits), strict=True))


def probe(address: PageAddress, timeout_s: float) -> Mapping[str, Any] | None:
    """The answer of a process to ``/ready``; see `cluster_view.Answers`."""
    try:
        found = json.loads(read_page(address, "/ready", timeout_s=timeout_s, size_bytes_max=ANSWER_BYTES_MAX))
    except (TimeoutError, ConnectionError):
        return None
    except (OSError, ConfigError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
