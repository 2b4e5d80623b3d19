"""Bookies of `triplicate up` on machines of their own: a changed table of racks misplaces ledgers, and their copies are moved."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from tests.process.at_once import at_once, json_at_once
from tests.process.copies import all_missing, names_of, registered, write_ledgers
from tests.process.machines import machines, set_racks
from tests.process.running import Member, Up
from tests.waiting import LIMIT_S, wait_until
from triplicate.autorecovery import Audit, AuditorMetrics, CopyPace, LedgerAudits
from triplicate.client import connect
from triplicate.config import ClientSettings

POLICY = """
[client]
placement_policy = "rack-aware"
placement_enforced = true
"""


def by_the_policy(*arguments: str, uri: str) -> subprocess.CompletedProcess[str]:
    """A command whose client has the policy of the bookies."""
    settings = {"TRIPLICATE_CLIENT_PLACEMENT_POLICY": "rack-aware", "TRIPLICATE_CLIENT_PLACEMENT_ENFORCED": "true"}
    return at_once(*arguments, uri=uri, check=False, **settings)


def set_far(uri: str, far: str) -> None:
    """One bookie is in a rack of its own."""
    names = [f"bookie-{number}" for number in range(1, 5)]
    set_racks(uri, {name: "/far" if name == far else "/near" for name in names})


def written_without(up: Up, bookie_id: str) -> list[int]:
    """Ledgers that are not on this bookie, which is killed before and not started again."""
    up.kill_member(bookie_id)
    wait_until(lambda: bookie_id not in asyncio.run(registered(up.uri)), LIMIT_S, "the registration is gone")
    # One bookie in another rack does not mend a striped ledger: two neighbours would have to move.
    ledger_ids = asyncio.run(write_ledgers(up.uri, shapes=[(3, 3, 2), (2, 2, 2)]))
    assert bookie_id not in asyncio.run(names_of(up.uri, ledger_ids))
    assert asyncio.run(all_missing(up.uri, ledger_ids)) == []
    return ledger_ids


def test_a_changed_table_misplaces_ledgers_and_a_pass_by_hand_mends_them(tmp_path: Path) -> None:
    with machines(tmp_path / "c", more=POLICY) as up:
        set_far(up.uri, "bookie-4")
        ledger_ids = written_without(up, "bookie-4")

        refused = by_the_policy("cluster", "recover", "--misplaced", "--json", uri=up.uri)
        assert refused.returncode == 1
        assert json.loads(refused.stdout)["refused"] == ledger_ids
        assert "no writable bookie outside the ensemble" in refused.stdout
        assert json_at_once("cluster", "under-replicated", uri=up.uri) == []

        with Member(up.folder, "bookie-4"):
            wait_until(lambda: "bookie-4" in asyncio.run(registered(up.uri)), LIMIT_S, "the bookie is back")
            dry = json.loads(by_the_policy("cluster", "recover", "--misplaced", "--dry-run", "--json", uri=up.uri).stdout)
            assert [one["ledger_id"] for one in dry["misplaced"]] == ledger_ids
            assert {tuple(one["targets"]) for one in dry["misplaced"]} == {("bookie-4",)}
            assert "bookie-4" not in asyncio.run(names_of(up.uri, ledger_ids))

            answer = by_the_policy("cluster", "recover", "--misplaced", "--rate", "0", uri=up.uri)
            assert answer.returncode == 0, answer.stderr
            assert f"{len(ledger_ids)} of {len(ledger_ids)} misplaced ledgers are mended" in answer.stdout
            assert asyncio.run(all_missing(up.uri, ledger_ids)) == []
            assert json_at_once("cluster", "under-replicated", uri=up.uri) == []
            assert by_the_policy("cluster", "audit", "--placement", uri=up.uri).returncode == 0
            again = json.loads(by_the_policy("cluster", "recover", "--misplaced", "--json", uri=up.uri).stdout)
            assert (again["misplaced"], again["repairs"]) == ([], [])
            wrong = at_once("cluster", "recover", "--misplaced", "bookie-1", uri=up.uri, check=False)
            assert wrong.returncode == 2
            assert "give no BOOKIE_ID with it" in wrong.stderr


@pytest.mark.deep
def test_workers_move_what_the_audit_of_placement_has_marked(tmp_path: Path) -> None:
    with machines(tmp_path / "c", heals=True, more=POLICY) as up:
        at_once("cluster", "autorecovery", "disable", uri=up.uri)
        set_far(up.uri, "bookie-1")
        ledger_ids = written_without(up, "bookie-4")
        with Member(up.folder, "bookie-4"):
            wait_until(lambda: "bookie-4" in asyncio.run(registered(up.uri)), LIMIT_S, "the bookie is back")
            set_far(up.uri, "bookie-4")
            misplaced = asyncio.run(marked_by_the_audit(up.uri))
            assert misplaced == ledger_ids
            listed = json_at_once("cluster", "under-replicated", uri=up.uri)
            assert [(one["ledger"], one["cause"], one["missing"]) for one in listed] == [(each, "placement", []) for each in ledger_ids]
            assert all(one["reason"].startswith("misplaced: from entry 0: 1 of 2 racks in") for one in listed)
            assert "none: misplaced" in at_once("cluster", "under-replicated", uri=up.uri).stdout

            at_once("cluster", "autorecovery", "enable", uri=up.uri)
            wait_until(lambda: json_at_once("cluster", "under-replicated", uri=up.uri) == [], LIMIT_S, "the queue is empty")
            assert asyncio.run(all_missing(up.uri, ledger_ids)) == []
            assert by_the_policy("cluster", "audit", "--placement", uri=up.uri).returncode == 0


async def marked_by_the_audit(uri: str) -> list[int]:
    """Run the auditor's check of placement now; it would run five minutes after the first election."""
    settings = ClientSettings(placement_policy="rack-aware", placement_enforced=True)
    async with connect(uri, settings=settings) as client:
        audits = LedgerAudits(client, CopyPace(client.host.clock, 0), AuditorMetrics(None), marks_misplaced_as="test")
        report = await audits.run(Audit.PLACEMENT)
        return [finding.ledger_id for finding in report.findings]
