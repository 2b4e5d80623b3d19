"""The timeline: facts and what clients saw in one order, repeats printed once, in words."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import pytest

from tests.unit.simulator.tiny import tiny_plan
from triplicate.sim import Fact
from triplicate_simulator import Acknowledged, Copy, Fault, Read, Sent, describe_run, replay, timeline
from triplicate_simulator.checkers.ledger_promises import MetadataWritten
from triplicate_simulator.checkers.log_rules import ListedSegment, SegmentsListed
from triplicate_simulator.runner.timeline import FACTS, numbers


def lines(*events: object, facts: tuple[Fact, ...] = (), node: str | None = None) -> list[str]:
    return [line.text for line in timeline(facts, events, node)]


def fact(kind: str, where: str = "bookie-1", time_s: float = 1.0, /, **facts: object) -> Fact:
    return Fact(time_s, where, kind, tuple(facts.items()))


def test_entries_in_a_row_are_printed_in_one_line() -> None:
    events = [Acknowledged(1.0 + number / 10, "writer", 3, number) for number in range(12, 41)]
    assert lines(*events) == ["gets entries 12–40 of ledger 3 acknowledged (until 5.0000)"]
    assert lines(events[0]) == ["gets entry 12 of ledger 3 acknowledged"]


def test_a_gap_in_entries_or_in_time_begins_a_line() -> None:
    far = [
        Acknowledged(1.0, "writer", 3, 1),
        Acknowledged(1.0, "writer", 3, 2),
        Acknowledged(1.0, "writer", 3, 4),
        Acknowledged(60.0, "writer", 3, 5),
    ]
    assert [line.partition(" of")[0].removeprefix("gets ") for line in lines(*far)] == ["entries 1–2", "entry 4", "entry 5"]


def test_a_fault_ends_a_run() -> None:
    events = [Acknowledged(float(number), "writer", 3, number) for number in range(4)]
    struck = fact("fault.kill", "world", 1.5, node="bookie-1")
    assert [line.partition(" (")[0] for line in lines(*events, facts=(struck,))] == [
        "gets entries 0–1 of ledger 3 acknowledged",
        "*** fault: kill  node bookie-1",
        "gets entries 2–3 of ledger 3 acknowledged",
    ]


def test_runs_of_several_writers_are_distinguished() -> None:
    events = [
        kind(float(number), writer, 1, number, *rest) for number in range(3) for writer in ("a", "b") for kind, rest in ((Sent, (b"x",)),)
    ]
    assert [(line.node, line.text) for line in timeline([], events)] == [
        (writer, "sends entries 0–2 of ledger 1 (until 2.0000)") for writer in ("a", "b")
    ]


def test_a_read_that_finds_nothing_says_so() -> None:
    assert lines(Read(1.0, 2.0, "reader", 1, 7, None)) == ["finds no entry 7 in ledger 1"]
    assert lines(Copy("bookie-1", 1, 7, None)) == ["holds no entry 7 of ledger 1"]


def test_known_facts_are_sentences_and_unknown_ones_are_printed_plainly() -> None:
    known = fact("client.ensemble_changed", ledger=4, first=9, ensemble="a,b,c")
    assert lines(facts=(known,)) == ["continues ledger 4 from entry 9 on a,b,c"]
    assert lines(facts=(fact("something.new", this=1, that="x"),)) == ["something.new: this 1, that x"]
    assert lines(facts=(fact("host.crash", silent=True, keep_unsynced=False),)) == [
        "crashes, and peers get no reset; unsynced data is lost or torn"
    ]
    assert all(template for template in FACTS.values())


def test_facts_and_events_are_in_one_order() -> None:
    events = [Acknowledged(2.0, "writer", 1, 0)]
    facts = (fact("host.start", "bookie-1", 1.0, life=1), fact("fault.kill", "world", 3.0, node="bookie-1"))
    assert lines(*events, facts=facts) == ["starts (life 1)", "gets entry 0 of ledger 1 acknowledged", "*** fault: kill  node bookie-1"]


def test_one_node_can_be_printed_alone_with_the_faults() -> None:
    facts = (fact("host.start", life=1), fact("host.start", "writer", life=1), fact("fault.kill", "world", 3.0, node="bookie-1"))
    assert [line.node for line in timeline(facts, [], "writer")] == ["writer", "world"]


def test_segments_of_a_log_and_of_a_ledger_are_both_printed() -> None:
    listed = SegmentsListed(1.0, "log", "keeper", 3, (ListedSegment(7, 3, 9, 100),))
    (line,) = lines(listed)
    assert line.startswith("segments listed: log log, reader keeper, first offset 3, segments ListedSegment(ledger_id=7, ")
    written = MetadataWritten(1.0, 7, 2, "open", (2, 2, 2), ((0, ("a", "b")),))
    assert "from entry 0 on a, b" in lines(written)[0]


def test_events_of_other_workloads_are_printed_by_their_name_and_fields() -> None:
    @dataclass(frozen=True)
    class BatchLost:
        time_s: float
        client: str
        batch_number: int

    assert dataclasses.is_dataclass(BatchLost)
    assert [(line.node, line.text) for line in timeline([], [BatchLost(1.0, "c", 4)])] == [("c", "batch lost: client c, batch number 4")]


def test_numbers_are_given_as_runs() -> None:
    assert numbers([3, 1, 2, 7, 9, 10]) == "entries 1–3, 7, 9–10"
    assert numbers([5]) == "entry 5"
    assert numbers([]) == "entries"
    assert numbers(range(0, 100, 2)).endswith("… 98")


@pytest.mark.usefixtures("tiny")
def test_a_replay_prints_plan_faults_and_violations() -> None:
    plan = tiny_plan(Fault("kill", 1.0, "bookie-1", lasts_s=0.5), complains=True)
    text = list(describe_run(replay(1, plan), plan))
    joined = "\n".join(text)
    assert "planned: kill bookie-1 at 1.000 s" in joined
    assert "*** fault: kill" in joined
    assert "1 violations" in joined
    assert "nothing_is_found: Nothing is wrong, unless the load asks for it." in joined
    assert text[-1] == "    60 entries were acknowledged"


@pytest.mark.usefixtures("tiny")
def test_a_replay_of_a_good_run_says_that_all_is_well() -> None:
    plan = tiny_plan(entries=5, duration_s=2.0)
    assert list(describe_run(replay(1, plan), plan))[-1].startswith("all is well")
