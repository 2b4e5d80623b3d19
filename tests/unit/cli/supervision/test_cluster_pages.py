"""`/health` and `/ready` of a whole local cluster."""

from __future__ import annotations

import json
import urllib.request

import pytest

from triplicate.cli.supervision.cluster_pages import SILENCE_MAX_S, ClusterPages, ClusterState, Serves
from triplicate.config import ProcessSettings
from triplicate.errors import EnvironmentFault
from triplicate.runtime import Metrics

YES = Serves.WITH_PROBES
READY = {"ready": True, "reasons": []}


def test_a_cluster_is_ready_when_every_process_is() -> None:
    state = ClusterState()
    assert not state.ready().well, "nothing is known yet"
    state.update({"zookeeper": Serves.WITHOUT_PROBES, "bookie-1": YES, "node-1": YES}, {"bookie-1": READY, "node-1": READY})
    assert state.ready().well
    assert state.ready().facts["processes"] == {"zookeeper": True, "bookie-1": True, "node-1": True}
    assert state.ready_count() == 3


def test_each_process_that_is_not_ready_is_named_with_its_reason() -> None:
    state = ClusterState()
    members = {"bookie-1": YES, "bookie-2": Serves.NOT, "bookie-3": YES, "node-1": YES}
    starting = {"ready": False, "reasons": ["database shop is starting"]}
    state.update(members, {"bookie-1": READY, "bookie-2": READY, "bookie-3": None, "node-1": starting})
    answer = state.ready()
    assert not answer.well
    assert answer.facts["reasons"] == ["bookie-2: does not run", "bookie-3: does not answer", "node-1: database shop is starting"]
    assert state.ready_count() == 1


def test_an_up_that_looks_after_nothing_any_more_is_unhealthy() -> None:
    now = [0.0]
    state = ClusterState(lambda: now[0])
    state.update({"bookie-1": YES}, {})
    now[0] = SILENCE_MAX_S - 1
    assert state.health().well
    now[0] = SILENCE_MAX_S + 1
    assert not state.health().well


def test_the_pages_are_served_until_they_are_closed_and_a_port_in_use_is_refused() -> None:
    state, metrics = ClusterState(), Metrics()
    metrics.gauge("triplicate_up_processes", "Processes of the cluster.").set(4)
    state.update({"bookie-1": YES}, {"bookie-1": READY})
    with ClusterPages(state, metrics, ProcessSettings()) as pages:
        with urllib.request.urlopen(pages.url, timeout=10) as answer:
            assert b"triplicate_up_processes 4.0" in answer.read()
        with urllib.request.urlopen(pages.url.replace("/metrics", "/ready"), timeout=10) as answer:
            assert json.loads(answer.read())["ready"] is True
        port = int(pages.url.split(":")[2].split("/")[0])
        with (
            pytest.raises(EnvironmentFault, match=f"127.0.0.1:{port} cannot be opened for the metrics"),
            ClusterPages(state, metrics, ProcessSettings(metrics_port=port)),
        ):
            pass
    with pytest.raises(OSError):
        urllib.request.urlopen(pages.url, timeout=10)
