"""Bookies of `triplicate up` on machines of their own: a changed table of racks misplaces ledgers, and their copies are moved."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.process.copies import all_missing, names_of, registered, write_ledgers
from tests.process.running import Member, Up, run, run_json
from tests.waiting import LIMIT_S, wait_until
from triplicate.autorecovery import Audit, AuditorMetrics, CopyPace, LedgerAudits
from triplicate.client import connect
from triplicate.config import ClientSettings

POLICY = """
[client]
placement_policy = "rack-aware"
placement_enforced = true
"""


@contextmanager
def machines(folder: Path, *, heals: bool) -> Iterator[Up]:
    """A cluster of four bookies, each on a loopback address of its own."""
    with Up(folder, "--nodes", "0", heals=heals) as up:
        assert up.end(signal.SIGTERM) == 0
    for number in range(1, 5):
        configuration = folder / f"bookie-{number}" / "bookie.toml"
        text = configuration.read_text().replace('"127.0.0.1"', f'"127.0.0.{number}"')
        configuration.write_text(text.replace("in_bookie = true", "in_bookie = true\nmove_misplaced = true") + POLICY)
    with Up(folder, "--nodes", "0", heals=heals) as up:
        wait_until(lambda: len(asyncio.run(registered(up.uri))) == 4, LIMIT_S, "all bookies are registered")
        yield up
        assert up.end(signal.SIGTERM) == 0


def by_the_policy(*arguments: str, uri: str) -> subprocess.CompletedProcess[str]:
    """A command whose client has the policy of the bookies."""
    settings = {"TRIPLICATE_CLIENT_PLACEMENT_POLICY": "rack-aware", "TRIPLICATE_CLIENT_PLACEMENT_ENFORCED": "true"}
    return run(*arguments, uri=uri, text=None, check=False, **settings)


def set_racks(uri: str, far: str) -> None:
    for number in range(1, 5):
        name = f"bookie-{number}"
        run("cluster", "racks", "set", name, "/far" if name == far else "/near", uri=uri)


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
    with machines(tmp_path / "c", heals=False) as up:
        set_racks(up.uri, "bookie-4")
        ledger_ids = written_without(up, "bookie-4")

        refused = by_the_policy("cluster", "recover", "--misplaced", "--json", uri=up.uri)
        assert refused.returncode == 1
        assert json.loads(refused.stdout)["refused"] == ledger_ids
        assert "no writable bookie outside the ensemble" in refused.stdout
        assert run_json("cluster", "under-replicated", uri=up.uri) == []

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
            assert run_json("cluster", "under-replicated", uri=up.uri) == []
            assert by_the_policy("cluster", "audit", "--placement", uri=up.uri).returncode == 0
            again = json.loads(by_the_policy("cluster", "recover", "--misplaced", "--json", uri=up.uri).stdout)
            assert (again["misplaced"], again["repairs"]) == ([], [])
            wrong = run("cluster", "recover", "--misplaced", "bookie-1", uri=up.uri, check=False)
            assert wrong.returncode == 2
            assert "give no BOOKIE_ID with it" in wrong.stderr


def test_workers_move_what_the_audit_of_placement_has_marked(tmp_path: Path) -> None:
    with machines(tmp_path / "c", heals=True) as up:
        run("cluster", "autorecovery", "disable", uri=up.uri)
        set_racks(up.uri, "bookie-1")
        ledger_ids = written_without(up, "bookie-4")
        with Member(up.folder, "bookie-4"):
            wait_until(lambda: "bookie-4" in asyncio.run(registered(up.uri)), LIMIT_S, "the bookie is back")
            set_racks(up.uri, "bookie-4")
            misplaced = asyncio.run(marked_by_the_audit(up.uri))
            assert misplaced == ledger_ids
            listed = run_json("cluster", "under-replicated", uri=up.uri)
            assert [(one["ledger"], one["cause"], one["missing"]) for one in listed] == [(each, "placement", []) for each in ledger_ids]
            assert all(one["reason"].startswith("misplaced: from entry 0: 1 of 2 racks in") for one in listed)
            assert "none: misplaced" in run("cluster", "under-replicated", uri=up.uri).stdout

            run("cluster", "autorecovery", "enable", uri=up.uri)
            wait_until(lambda: run_json("cluster", "under-replicated", uri=up.uri) == [], LIMIT_S, "the queue is empty")
            assert asyncio.run(all_missing(up.uri, ledger_ids)) == []
            assert by_the_policy("cluster", "audit", "--placement", uri=up.uri).returncode == 0


async def marked_by_the_audit(uri: str) -> list[int]:
    """Run the auditor's check of placement now; it would run five minutes after the first election."""
    settings = ClientSettings(placement_policy="rack-aware", placement_enforced=True)
    async with connect(uri, settings=settings) as client:
        audits = LedgerAudits(client, CopyPace(client.host.clock, 0), AuditorMetrics(None), marks_misplaced_as="test")
        report = await audits.run(Audit.PLACEMENT)
        return [finding.ledger_id for finding in report.findings]
