"""How long a ledger is left alone after a failed repair."""

from __future__ import annotations

import random

from triplicate.autorecovery.core.repair_delays import FIRST_S, LONGEST_S, RepairDelays


def test_the_delay_doubles_with_each_failure_up_to_its_bound() -> None:
    delays = RepairDelays(random.Random(1).random)
    now, before = 0.0, 0.0
    for attempt in range(12):
        delays.failed(7, now)
        end = delays.next_end(now)
        assert end is not None
        step_s = min(LONGEST_S, FIRST_S * 2**attempt)
        assert step_s / 2 <= end - now <= step_s
        assert delays.is_held(7, end - 0.001)
        assert not delays.is_held(7, end)
        now, before = end, end - now
    assert before >= LONGEST_S / 2


def test_other_ledgers_are_not_held() -> None:
    delays = RepairDelays(random.Random(1).random)
    delays.failed(7, 0.0)
    assert not delays.is_held(8, 0.0)
    delays.clear(7)
    assert not delays.is_held(7, 0.0)
    assert delays.next_end(0.0) is None


def test_a_grace_period_does_not_count_as_a_failure() -> None:
    delays = RepairDelays(random.Random(1).random)
    delays.wait_until(7, 30.0)
    assert delays.is_held(7, 29.0)
    assert not delays.is_held(7, 30.0)
    delays.failed(7, 30.0)
    end = delays.next_end(30.0)
    assert end is not None
    assert end <= 30.0 + FIRST_S


def test_the_number_of_ledgers_is_bounded() -> None:
    delays = RepairDelays(random.Random(1).random, ledgers_max=3)
    for ledger_id in range(10):
        delays.failed(ledger_id, 0.0)
    assert len(delays) == 3
    assert [ledger_id for ledger_id in range(10) if delays.is_held(ledger_id, 0.0)] == [7, 8, 9]
