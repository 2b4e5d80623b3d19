"""Fixtures of all modules of this folder."""

from __future__ import annotations

import pytest

from tests.simulation.shared_runs import SharedRuns


@pytest.fixture(scope="session")
def runs() -> SharedRuns:
    return SharedRuns()
