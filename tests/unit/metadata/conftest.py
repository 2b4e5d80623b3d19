"""Sessions with ZooKeeper end with their test, also where it fails.

One that is left goes on connecting on a thread of its own, and draws its pauses from the `random` of the whole process: tests that come
later, and have nothing to do with it, would fail with it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from triplicate.metadata.drivers.zookeeper_session import STOP_ERRORS, ZooKeeperSession


@pytest.fixture(autouse=True)
def no_session_outlives_its_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    running: dict[int, ZooKeeperSession] = {}
    start, stop = ZooKeeperSession.start, ZooKeeperSession.stop

    def started(session: ZooKeeperSession) -> None:
        running[id(session)] = session
        start(session)

    def stopped(session: ZooKeeperSession) -> None:
        running.pop(id(session), None)
        stop(session)

    monkeypatch.setattr(ZooKeeperSession, "start", started)
    monkeypatch.setattr(ZooKeeperSession, "stop", stopped)
    yield
    for session in running.values():
        # Its server may be gone, and then the session cannot be closed.
        session._handler.over = True
        with contextlib.suppress(*STOP_ERRORS):
            stop(session)
