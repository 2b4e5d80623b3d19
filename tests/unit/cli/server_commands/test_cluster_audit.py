"""The auditor's checks by command."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from triplicate.cli.main import cli
from triplicate.client import connect
from triplicate.errors import ArgumentError
from triplicate.ledger import DigestType, EnsembleSegment, LedgerMetadata, LedgerState
from triplicate.metadata import PeriodicCheck, bookie_service


@pytest.fixture
def uri(tmp_path: Path) -> str:
    found = f"sqlite://{tmp_path}/metadata.db"
    assert CliRunner().invoke(cli, ["cluster", "init", found]).exit_code == 0
    return found


def audit(uri: str, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["cluster", "audit", *arguments, "--metadata", uri])


def audited(uri: str, *arguments: str) -> Result:
    """Run the command while a bookie is registered."""

    async def body() -> Result:
        async with connect(uri) as client:
            await client.metadata.bookies.register("a", bookie_service("127.0.0.1", 1))
            return await asyncio.to_thread(audit, uri, *arguments)

    return asyncio.run(body())


async def make_ledger(uri: str) -> None:
    async with connect(uri) as client:
        segment = EnsembleSegment(0, ("a", "b"))
        metadata = LedgerMetadata(
            ensemble_size=2,
            write_quorum=2,
            ack_quorum=1,
            state=LedgerState.CLOSED,
            length=0,
            last_entry_id=-1,
            digest_type=DigestType.CRC32C,
            password=b"",
            segments=(segment,),
        )
        await client.metadata.ledgers.create(0, metadata)


async def marks_and_times(uri: str) -> tuple[dict[int, tuple[str, ...]], int | None]:
    async with connect(uri) as client:
        marks = client.metadata.under_replication
        return {mark.ledger_id: mark.missing async for mark in marks.marks()}, await marks.check_time_ms(PeriodicCheck.PLACEMENT_POLICY)


def test_ledgers_of_lost_bookies_are_listed_and_marked(uri: str) -> None:
    asyncio.run(make_ledger(uri))
    dry = audited(uri, "--lost", "--dry-run")
    assert dry.exit_code == 1
    assert "lost: 1 ledgers, 1 found, 0 not examined" in dry.stdout
    assert asyncio.run(marks_and_times(uri)) == ({}, None)
    done = audited(uri, "--lost", "--json")
    assert done.exit_code == 1
    (report,) = json.loads(done.stdout)
    assert (report["audit"], report["found"]) == ("lost", 1)
    assert report["findings"] == [{"ledger_id": 0, "bookies": ["b"], "reason": "the bookie is lost"}]
    assert asyncio.run(marks_and_times(uri))[0] == {0: ("b",)}


def test_a_cluster_in_order_is_audited_with_exit_code_0_and_the_time_is_kept(uri: str) -> None:
    done = audited(uri)
    assert done.exit_code == 0, done.output
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == ["lost", "ledgers", "replicas", "placement"]
    assert asyncio.run(marks_and_times(uri))[1] is not None


def test_without_bookies_the_command_is_refused(uri: str) -> None:
    assert isinstance(audit(uri).exception, ArgumentError)
