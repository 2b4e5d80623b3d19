"""Which replica to ask next, and when an entry is absent."""

from triplicate.ledger import ReadPlan


def test_replicas_are_asked_in_order() -> None:
    plan = ReadPlan(5, ["b", "c", "a"], 3)
    assert [plan.next_replica() for _ in range(4)] == ["b", "c", "a", None]


def test_an_ordinary_read_needs_every_replica_to_deny() -> None:
    plan = ReadPlan(5, ["a", "b"], 2)
    for bookie_id in "ab":
        assert not plan.is_absent
        assert plan.next_replica() == bookie_id
        plan.absent(bookie_id)
    assert plan.is_absent


def test_recovery_needs_write_quorum_less_ack_quorum_and_one() -> None:
    plan = ReadPlan(5, ["a", "b", "c"], 2)
    plan.next_replica()
    plan.absent("a")
    plan.next_replica()
    plan.absent("b")
    assert plan.is_absent


def test_a_failure_says_nothing_about_the_entry() -> None:
    plan = ReadPlan(5, ["a", "b", "c"], 2)
    for bookie_id in "abc":
        plan.next_replica()
        if bookie_id == "b":
            plan.absent(bookie_id)
        else:
            plan.failed(bookie_id, "did not answer in time")
    assert not plan.is_absent
    assert plan.is_exhausted
    assert plan.report() == "a: did not answer in time; c: did not answer in time; b: has no such entry"


def test_a_replica_that_was_not_asked_is_not_heard() -> None:
    plan = ReadPlan(5, ["a", "b"], 1)
    plan.absent("b")
    plan.absent("a")
    assert not plan.is_absent


def test_several_replicas_may_be_asked_at_once() -> None:
    plan = ReadPlan(5, ["a", "b", "c"], 2)
    assert [plan.next_replica(), plan.next_replica()] == ["a", "b"]
    plan.failed("a", "broken")
    assert not plan.is_exhausted
    plan.absent("b")
    assert not plan.is_exhausted
    assert plan.next_replica() == "c"
    plan.failed("c", "broken")
    assert plan.is_exhausted
