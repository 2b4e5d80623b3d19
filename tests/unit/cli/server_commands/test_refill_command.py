"""The output of the refill of a bookie, and its exit code."""

from __future__ import annotations

from click.testing import CliRunner

from tests.unit.client.cluster import run
from triplicate.autorecovery import LedgerRepair, RefillReport, RepairOutcome
from triplicate.cli.main import cli
from triplicate.cli.server_commands.refill_command import facts_of, left_of
from triplicate.metadata import open_cluster
from triplicate.runtime import real_host


def test_ledgers_that_are_left_are_listed_with_their_reasons() -> None:
    repairs = (
        LedgerRepair(3, RepairOutcome.REPAIRED, 10, 1000, 1),
        LedgerRepair(5, RepairOutcome.HAS_WRITER, 2, 100, 1, "a writer lives"),
        LedgerRepair(6, RepairOutcome.LOCKED),
    )
    report = RefillReport("b", was_in_limbo=True, complete=False, repairs=repairs, blocked=((4, "it is in the trash"),))
    assert left_of(report) == [(4, "it is in the trash"), (5, "a writer lives"), (6, "locked")]
    facts = facts_of(report)
    assert (facts["entries"], facts["size_bytes"], facts["complete"]) == (12, 1100, False)
    assert facts["left"][0] == {"ledger": 4, "reason": "it is in the trash"}


def test_a_bookie_that_is_not_in_limbo_needs_nothing(tmp_path: object) -> None:
    uri = f"sqlite:///{tmp_path}/cluster.db"

    async def create() -> None:
        await (await open_cluster(uri, real_host("test"), create=True)).aclose()

    run(create())
    answer = CliRunner().invoke(cli, ["bookie", "refill", "b-1", "--metadata", uri])
    assert answer.exit_code == 0, answer.output
    assert "bookie b-1 is not in limbo" in answer.output
