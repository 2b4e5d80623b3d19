"""Which lost bookies are audited, and when."""

from __future__ import annotations

from triplicate.autorecovery.core.lost_bookies import LostBookies, may_resume, record_interval_s

ALL = ("a", "b", "c", "d")


def started(*registered: str) -> LostBookies:
    lost = LostBookies()
    lost.observe(0.0, ALL, registered)
    return lost


def test_a_lost_bookie_is_due_after_the_delay() -> None:
    lost = started(*ALL)
    lost.observe(10.0, ALL, "acd")
    assert lost.waiting == ("b",)
    assert lost.due(69.9, 60) == ()
    assert lost.next_due(60) == 70.0
    assert lost.due(70.0, 60) == ("b",)


def test_a_bookie_that_returns_in_time_is_never_due() -> None:
    lost = started(*ALL)
    lost.observe(10.0, ALL, "acd")
    assert lost.observe(40.0, ALL, ALL) == ("b",)
    assert lost.due(1000.0, 60) == ()
    assert lost.next_due(60) is None
    lost.observe(1000.0, ALL, "acd")
    assert lost.due(1059.0, 60) == (), "the delay of the second loss counts from the second loss"


def test_a_changed_delay_counts_from_the_loss() -> None:
    lost = started(*ALL)
    lost.observe(10.0, ALL, "acd")
    assert lost.due(12.0, 60) == ()
    assert lost.due(12.0, 1) == ("b",)
    assert lost.due(10.0, 0) == ("b",)


def test_several_that_leave_are_due_without_delay() -> None:
    lost = started(*ALL)
    lost.observe(10.0, ALL, "acd")
    lost.observe(20.0, ALL, "ad")
    assert lost.due(20.0, 60) == ("b", "c")


def test_several_that_were_absent_at_the_election_wait_for_the_delay() -> None:
    lost = started("a")
    assert lost.due(0.0, 60) == ()
    lost.observe(5.0, ALL, ALL)
    assert lost.due(100.0, 60) == ()


def test_one_that_leaves_beside_one_that_was_absent_waits() -> None:
    lost = started("a", "b", "c")
    lost.observe(10.0, ALL, "ac")
    assert lost.due(10.0, 60) == ()
    assert lost.due(60.0, 60) == ("d",), "the other waits for its own delay"


def test_an_audited_bookie_is_not_audited_again_until_the_next_search_or_its_return() -> None:
    lost = started(*ALL)
    lost.observe(10.0, ALL, "acd")
    lost.audited(lost.due(70.0, 60))
    lost.observe(71.0, ALL, "acd")
    assert lost.waiting == ()
    lost.audit_again()
    lost.observe(80.0, ALL, "acd")
    assert lost.due(140.0, 60) == ("b",)
    lost.audited(["b"])
    lost.observe(200.0, ALL, ALL)
    lost.observe(300.0, ALL, "acd")
    assert lost.due(360.0, 60) == ("b",)


def test_a_bookie_without_a_cookie_that_only_a_ledger_names_is_lost() -> None:
    lost = started(*ALL)
    lost.observe(10.0, (*ALL, "old"), ALL)
    assert lost.due(70.0, 60) == ("old",)


def test_the_absences_that_an_earlier_auditor_saw_count_once() -> None:
    lost = LostBookies()
    lost.resume({"b": 50.0, "c": 50.0})
    lost.observe(100.0, ["a", "b", "c"], ["a", "c"])
    assert lost.absences(105.0) == {"b": 55.0}
    assert lost.due(109.9, 60.0) == ()
    assert lost.due(110.0, 60.0) == ("b",)
    lost.observe(120.0, ["a", "b", "c"], ["a"])
    assert lost.absences(120.0) == {"b": 70.0, "c": 0.0}, "c was registered in this term"


def test_a_record_counts_while_it_is_young() -> None:
    assert may_resume(100_000, 100_000, 60.0)
    assert may_resume(160_000, 100_000, 1.0)
    assert not may_resume(160_001, 100_000, 1.0)
    assert may_resume(400_000, 100_000, 300.0)
    assert not may_resume(99_999, 100_000, 300.0), "a clock differs"


def test_a_record_is_written_often_enough_for_its_delay() -> None:
    assert [record_interval_s(delay_s) for delay_s in (0, 5, 60, 3600)] == [1.0, 1.0, 6.0, 10.0]
