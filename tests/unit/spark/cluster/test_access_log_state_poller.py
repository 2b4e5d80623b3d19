"""How far logs can be read: looked up at most once in an interval, and after the question."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.spark.stand import LOG, Stand, stand
from triplicate.spark.cluster import access


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    with stand(monkeypatch) as made:
        yield made


class PassingTime:
    """A clock that nothing but a pause moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_logs_are_looked_at_once_in_an_interval_and_what_was_published_before_is_seen(
    cluster: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer of a moment ago would let `processAllAvailable` return before the last records were read."""
    clock = PassingTime()
    monkeypatch.setattr(access, "time", clock)
    seen = access.LogStatePoller("memory:", "", [LOG], 3600)
    assert seen.states()[LOG].end == 0
    assert clock.now == 100
    cluster.write(b"a")
    assert seen.last_states()[LOG].end == 0
    assert seen.states()[LOG].end == 1
    assert clock.now == 100 + 3600
    clock.sleep(4000)
    cluster.write(b"b")
    assert seen.states()[LOG].end == 2
    assert clock.now == 100 + 3600 + 4000
