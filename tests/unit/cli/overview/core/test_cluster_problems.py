"""Every wound of a cluster is a problem with a command, and a healthy cluster has none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.cli.overview.cluster_facts_rig import NOW_MS, bookie, healthy, recovering, wounded
from triplicate.cli.overview.core.cluster_facts import (
    BookieState,
    ClusterFacts,
    CopyFacts,
    FreezeFacts,
    KnownNode,
    LedgerCounts,
    Listed,
    LogFacts,
    MarkFacts,
    RecoveryFacts,
    ReplicaFacts,
)
from triplicate.cli.overview.core.cluster_problems import age_text, problems_of
from triplicate.cli.overview.core.status_screen import screen_lines


def texts(facts: ClusterFacts) -> list[str]:
    return [one.text for one in problems_of(facts)]


def test_a_healthy_cluster_has_no_problems() -> None:
    assert problems_of(healthy()) == ()


def test_each_wound_is_a_problem() -> None:
    assert texts(wounded()) == [
        "1 bookie is lost: bookie-2 (11 ledgers)",
        "1 bookie does not answer: bookie-3",
        "2 ledgers are under-replicated, the oldest for 10 min; copies missing: 2 on bookie-2",
        "auto-recovery is disabled, so they stay under-replicated",
        "database shop has no leader (node-2: its log differs)",
        "the copy of database shop on node-2 is diverged",
        "log events needs 1 ledger that is gone: 40",
        "log events has 1 lost segment",
        "1 log has segments with fewer copies: events",
    ]


def test_a_recovering_cluster_is_not_healthy() -> None:
    assert texts(recovering()) == [
        "1 bookie is lost: bookie-2 (11 ledgers)",
        "5 ledgers are under-replicated, the oldest for 2 min; copies missing: 5 on bookie-2",
    ]


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (replace(healthy(), bookies=Listed((bookie(1), bookie(2, BookieState.READ_ONLY)))), "bookie bookie-2 is read-only"),
        (
            replace(healthy(), bookies=Listed((bookie(1), replace(bookie(2, BookieState.READ_ONLY), requested=True)))),
            "bookie bookie-2 is read-only on request",
        ),
        (
            replace(healthy(), bookies=Listed((bookie(1), replace(bookie(2), requested=True)))),
            "bookie bookie-2 is writable, although it is requested to be read-only",
        ),
        (
            replace(healthy(), bookies=Listed((bookie(1), replace(bookie(2, BookieState.READ_ONLY), requested=True, leaving=True)))),
            "bookie bookie-2 is being decommissioned",
        ),
        (
            replace(healthy(), bookies=Listed((bookie(1), replace(bookie(2, BookieState.READ_ONLY), leaving=True, has_cookie=False)))),
            "bookie bookie-2 was decommissioned and still runs: stop it",
        ),
        (
            replace(healthy(), bookies=Listed((bookie(1), replace(bookie(2), visited=False)))),
            "the disks of bookie bookie-2 were replaced, and its ledgers were not checked since",
        ),
        (replace(healthy(), bookies=Listed(())), "no bookie runs: none is registered; start their servers"),
        (replace(healthy(), location_problems=("x",)), "a network location is not used: x"),
        (
            replace(healthy(), shared_machines=(("10.0.0.1", "a.example"),)),
            "10.0.0.1 and a.example are one machine, and count as several: let its bookies register one name (bookie.advertised_address)",
        ),
        (replace(healthy(), bookies=Listed((), "no answer within 3 s")), "not read completely: the bookies: no answer within 3 s"),
        (
            replace(healthy(), logs=Listed((), "late"), databases=Listed((), "late"), stores=Listed((), "late")),
            "not read completely: the databases, the stores, the logs: late",
        ),
        (replace(healthy(), recovery=RecoveryFacts(cut="late")), "not read completely: the state of auto-recovery: late"),
        (replace(healthy(), ledgers=LedgerCounts(3, unreadable=(5,))), "the metadata of 1 ledger cannot be decoded: 5"),
        (replace(healthy(), logs=Listed((LogFacts("a", None, 0, None, problem="torn"),))), "log a: torn"),
        (replace(healthy(), marks=Listed((MarkFacts(1, (), None, None),))), "1 ledger is under-replicated; misplaced: 1"),
    ],
)
def test_one_wound_is_one_problem(facts: ClusterFacts, text: str) -> None:
    assert texts(facts) == [text]


def test_bookies_whose_disks_were_replaced_one_after_another_are_named_together() -> None:
    replaced = [replace(bookie(number), visited=False, incarnation=2) for number in (2, 3)]
    (*each, together) = problems_of(replace(healthy(), bookies=Listed((bookie(1), *replaced))))
    assert [one.text.split(" were ")[0] for one in each] == ["the disks of bookie bookie-2", "the disks of bookie bookie-3"]
    assert together.text.startswith("ledgers that are open on bookie-2, bookie-3 may have lost an ack quorum with their disks")
    assert together.command == "triplicate bookie refill bookie-2"


def test_each_problem_names_a_command() -> None:
    assert all(one.command.startswith("triplicate ") for one in problems_of(wounded()))


def test_a_problem_names_a_few_and_counts_the_others() -> None:
    lost = tuple(bookie(number, BookieState.LOST) for number in range(1, 7))
    facts = replace(healthy(), bookies=Listed((*lost, bookie(7))), ledgers=LedgerCounts(cut="late"))
    named = "bookie-1 (0+ ledgers), bookie-2 (0+ ledgers), bookie-3 (0+ ledgers) and 3 more"
    assert f"6 bookies are lost: {named}" in texts(facts)


@pytest.mark.parametrize(
    ("age_ms", "text"), [(-5, "0 s"), (119_999, "119 s"), (120_000, "2 min"), (7_200_000, "2 h"), (NOW_MS, "20717 days")]
)
def test_ages_have_units(age_ms: int, text: str) -> None:
    assert age_text(age_ms) == text


def test_a_lost_bookie_that_no_ledger_names_can_be_decommissioned() -> None:
    facts = replace(healthy(), bookies=Listed((bookie(1), bookie(2, BookieState.LOST))), ledgers=LedgerCounts(3, by_bookie={"bookie-1": 3}))
    problems = {problem.text: problem.command for problem in problems_of(facts)}
    text = "bookie bookie-2 is lost, and no ledger names it: start it, or decommission it if it is gone for good"
    assert problems == {text: "triplicate bookie decommission bookie-2"}, "one death is one problem"
    named = replace(facts, ledgers=LedgerCounts(3, by_bookie={"bookie-2": 1}))
    assert texts(named) == ["1 bookie is lost: bookie-2 (1 ledger)"]
    unknown = replace(facts, ledgers=LedgerCounts(3, cut="late"))
    assert "1 bookie is lost: bookie-2 (0+ ledgers)" in texts(unknown)
    assert text not in texts(unknown)


@pytest.mark.parametrize("kind", ["database", "store"])
def test_a_copy_that_is_missing_on_a_node_that_runs_is_a_problem(kind: str) -> None:
    copies = (CopyFacts("node-1", "leader", 0), CopyFacts("node-2", "follower", 0))
    shop = ReplicaFacts("shop", "node-1", copies, 3, missing_on=("node-3",))
    healthy_now = replace(healthy(), nodes=Listed(tuple(KnownNode(f"node-{number}") for number in (1, 2, 3))))

    def having(replica: ReplicaFacts) -> ClusterFacts:
        found = Listed((replica,))
        return replace(healthy_now, stores=found) if kind == "store" else replace(healthy_now, databases=found)

    facts = having(shop)
    (problem,) = problems_of(facts)
    assert problem.text == f"{kind} shop has 2 of 3 copies: none on node-3"
    assert problem.command == f"triplicate {'kv' if kind == 'store' else kind} show shop"
    assert "2 of 3: node-2 follower" in "\n".join(screen_lines(facts))
    assert texts(having(replace(shop, missing_on=()))) == [f"{kind} shop has 2 of 3 copies"], "no third node was there to be chosen"


def test_a_node_that_does_not_run_is_one_problem_and_names_what_lacks_a_copy() -> None:
    copies = (CopyFacts("node-1", "leader", 0),)
    shop, basket = (ReplicaFacts(name, "node-1", copies, 2, missing_on=("node-2",)) for name in ("shop", "basket"))
    nodes = Listed((KnownNode("node-1"), KnownNode("node-2", is_running=False)))
    facts = replace(healthy(), nodes=nodes, databases=Listed((shop,)), stores=Listed((basket,)))
    (problem,) = problems_of(facts)
    remedy = "start it, or remove it with triplicate node remove node-2"
    assert problem.text == f"node node-2 does not run, and shop, basket lack a copy: {remedy}"
    assert problem.command == "triplicate node list"
    assert "DATABASES 1 on 1 of 2 nodes" in screen_lines(facts)
    assert texts(replace(healthy(), nodes=nodes)) == [f"node node-2 does not run: {remedy}"]
    draining = Listed((KnownNode("node-1"), KnownNode("node-2", is_running=False, is_expected=False)))
    assert texts(replace(healthy(), nodes=draining)) == [], "an operator has let it leave"
    assert "DATABASES 2 on 1 node" in screen_lines(replace(healthy(), nodes=draining))


def test_a_copy_that_moves_is_no_problem_while_the_former_one_serves() -> None:
    copies = tuple(CopyFacts(f"node-{number}", role, 0) for number, role in ((1, "leader"), (2, "follower"), (3, "follower")))
    moving = ReplicaFacts("shop", "node-1", copies, 3, missing_on=("node-4",))
    assert texts(replace(healthy(), databases=Listed((moving,)))) == []
    reader = ReplicaFacts("shop", "node-1", copies, 3, readers=("node-3",))
    assert texts(replace(healthy(), databases=Listed((reader,)))) == ["database shop has 2 of 3 copies"], (
        "one that never leads does not count"
    )


def test_a_freeze_of_ensembles_is_a_problem_with_its_end() -> None:
    facts = replace(healthy(), freeze=FreezeFacts("until 2026-11-23T15:00:00Z by me@here: a switch is replaced"))
    (problem,) = problems_of(facts)
    assert problem.text == "ensembles are frozen until 2026-11-23T15:00:00Z by me@here: a switch is replaced"
    assert problem.command == "triplicate cluster freeze-ensembles off"
    assert texts(replace(healthy(), freeze=FreezeFacts(cut="no answer within 10 s"))) == [
        "not read completely: the freeze of ensembles: no answer within 10 s"
    ]


def stopped() -> ClusterFacts:
    facts = wounded()
    bookies = tuple(replace(bookie(number, BookieState.LOST), has_cookie=True) for number in range(1, 5))
    return replace(
        facts,
        bookies=Listed(bookies),
        ledgers=LedgerCounts(12, 2, {"bookie-1": 12}),
        nodes=Listed((KnownNode("node-1", is_running=False),)),
    )


def test_a_cluster_that_is_stopped_has_one_problem() -> None:
    for facts in (stopped(), replace(stopped(), bookies=Listed(()))):
        (problem,) = problems_of(facts)
        assert problem.text.startswith("nothing of this cluster runs: no bookie and no node is registered; start `triplicate up`")
        assert problem.command == "triplicate up --dir FOLDER"
        assert not [line for line in screen_lines(facts) if "bookie-" in line and "lost" in line], "nobody knows whether a disk is lost"
    (problem,) = problems_of(replace(stopped(), folder="/there"))
    assert problem.command == "triplicate up --dir /there"
    (_, frozen) = problems_of(replace(stopped(), freeze=FreezeFacts("since yesterday")))
    assert frozen.text == "ensembles are frozen since yesterday", "a start does not solve this"


def test_bookies_that_are_all_gone_are_not_to_be_decommissioned() -> None:
    problems = problems_of(replace(stopped(), nodes=Listed((KnownNode("node-1"),))))
    assert problems[0].text == "no bookie runs: none is registered; start their servers"
    assert "database shop has no leader (node-2: its log differs)" in [one.text for one in problems]
    assert not [one for one in problems if "decommission" in one.command or "lost: " in one.text]


def test_what_could_not_be_read_does_not_count_as_stopped() -> None:
    for facts in (
        replace(stopped(), bookies=Listed(stopped().bookies.items, "no answer")),
        replace(stopped(), nodes=Listed((), "no answer")),
    ):
        assert "nothing of this cluster runs" not in " ".join(texts(facts))


def test_read_only_bookies_alone_take_no_entries() -> None:
    facts = replace(healthy(), bookies=Listed((bookie(1, BookieState.READ_ONLY), bookie(2, BookieState.LOST))))
    assert "no bookie is writable" in texts(facts)
    assert "1 bookie is lost: bookie-2 (11 ledgers)" in texts(facts)
