"""Which lost bookies are audited, and when."""

from __future__ import annotations

from triplicate.autorecovery.core.lost_bookies import LostBookies

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
