"""The tiny play is there for every test of this folder that asks for it."""

from __future__ import annotations

import pytest

from tests.unit.simulator.tiny import TinyPlay
from triplicate_simulator import WORKLOADS


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WORKLOADS, "tiny", TinyPlay)
