"""Reports of nodes about their copies and snapshots: faults of a run explain some of them, and the others are findings."""

from __future__ import annotations

import pytest

from triplicate.sim import Fact
from triplicate_simulator.workloads.sql.sql_audit import RETRIES_MAX, count_window_faults, find_unsound_copies

QUIET_S = 45.0
LOG = "database.books.1"


def fact(kind: str, at_s: float = 10.0, **facts: object) -> Fact:
    return Fact(at_s, "node-1", kind, tuple(facts.items()))


FINDINGS = {
    "a copy failed": [fact("node.copy_failed", error="EnvironmentFault('no room')")],
    "a copy was given up": [fact("node.copy_given_up", position=7, reason="row 3 is not there")],
    "a snapshot was found damaged": [fact("replica.snapshot_damaged", snapshot="b", error="its digest is another")],
    "a snapshot was read back and was another": [fact("replica.snapshot_failed", during="make", error="SnapshotDamaged('chunk 1')")],
    "a snapshot could not be made of an unsound copy": [fact("replica.snapshot_failed", during="make", error="CorruptionError('page 2')")],
    "a snapshot could not be understood": [fact("replica.snapshot_not_loaded", error="FormatError: it is xml of sql 00")],
    "a copy retries for ever": [
        fact("replica.retry", QUIET_S + 6.0 + number, log=LOG, during="load a snapshot", error="ReadFailed()")
        for number in range(RETRIES_MAX + 1)
    ],
}
EXCUSED = {
    "a snapshot whose ledger was deleted": [fact("replica.snapshot_damaged", snapshot="a", error="ledger 7 does not exist")],
    "bookies were away": [fact("replica.snapshot_failed", during="make", error="ReadFailed('bookie-3 is unavailable')")],
    "retries while there were faults": [
        fact("replica.retry", QUIET_S - 1.0, log=LOG, during="follow", error="ConnectionLost()") for _ in range(2 * RETRIES_MAX)
    ],
    "retries that ended": [
        fact("replica.retry", QUIET_S + 6.0, log=LOG, during="follow", error="ConnectionLost()") for _ in range(RETRIES_MAX)
    ],
}


@pytest.mark.parametrize("name", FINDINGS)
def test_what_no_fault_explains_is_found(name: str) -> None:
    (found,) = find_unsound_copies(FINDINGS[name], QUIET_S, {"a"})
    assert found.startswith(("copy: ", "snapshot: "))


@pytest.mark.parametrize("name", EXCUSED)
def test_what_faults_explain_is_not(name: str) -> None:
    assert find_unsound_copies(EXCUSED[name], QUIET_S, {"a"}) == []


def test_faults_are_counted_that_struck_a_leader_with_groups_at_the_log() -> None:
    faults = [fact("fault.kill", node="node-1", point=point) for point in ("sql.further_group", "sql.further_append", "sql.append", "")]
    assert count_window_faults([*faults, fact("point.struck", point="sql.further_append")]) == 2
