"""Requests ``/ready`` from the processes of a local cluster, in its own thread: a hanging process must not block `triplicate up`."""

from __future__ import annotations

import http.client
import json
import threading
import urllib.parse
from collections.abc import Mapping
from typing import Any

from triplicate.cli.supervision.cluster_view import Answers
from triplicate.cli.supervision.local_processes import LocalCluster

INTERVAL_S = 1.0
TIMEOUT_S = 2.0
ANSWER_BYTES_MAX = 1024 * 1024


class Prober:
    """Use it as a context manager. `targets` and `answers` are replaced as a whole, so both threads see one state or the next.

    Args:
        answers: the answers of an earlier round.
    """

    def __init__(self, answers: Answers) -> None:
        self.targets: dict[str, str] = {}
        """URLs of the metrics, by process."""
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
            self.answers = probe_all(self.targets)


def targets_of(cluster: LocalCluster) -> dict[str, str]:
    """The URLs of the metrics of serving processes."""
    return {name: str(one.facts["metrics"]) for name, one in cluster.running.items() if "metrics" in one.facts}


def probe_all(targets: Mapping[str, str]) -> dict[str, Mapping[str, Any] | None]:
    return {name: probe(url) for name, url in targets.items()}


def probe(metrics_url: str) -> Mapping[str, Any] | None:
    """The answer of a process to ``/ready``; None if it does not answer in time."""
    place = urllib.parse.urlsplit(metrics_url)
    # urllib.request would use a proxy from the environment.
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", "/ready")
        found = json.loads(connection.getresponse().read(ANSWER_BYTES_MAX))
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return found if isinstance(found, dict) else None
