"""For all tests of logs."""

from __future__ import annotations

import pytest

from triplicate.log.core import rolling_policy


@pytest.fixture(autouse=True)
def hold_until_the_next_ledger_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a full segment wait for the next ledger: on a slow machine it would accept another entry, and tests count segments."""
    monkeypatch.setattr(rolling_policy, "HOLD_S", 60.0)
