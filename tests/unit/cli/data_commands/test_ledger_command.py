"""Ledgers and marks are listed by bookie."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from triplicate.cli.main import cli
from triplicate.ledger import DigestType, EnsembleSegment, LedgerMetadata
from triplicate.metadata import open_cluster
from triplicate.runtime import real_host


def ledger_on(*bookies: str, later: str = "") -> LedgerMetadata:
    segments = (EnsembleSegment(0, bookies), *((EnsembleSegment(5, (later, *bookies[1:])),) if later else ()))
    return LedgerMetadata(len(bookies), len(bookies), 1, segments, digest_type=DigestType.CRC32C)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Ledgers 1 to 3 on several bookies; 1 and 2 are marked."""
    found = f"sqlite://{tmp_path}/metadata.db"
    assert CliRunner().invoke(cli, ["cluster", "init", found]).exit_code == 0

    async def fill() -> None:
        async with await open_cluster(found, real_host("test")) as cluster:
            for ledger_id, metadata in ((1, ledger_on("a", "b")), (2, ledger_on("b", "c", later="d")), (3, ledger_on("c", "d"))):
                await cluster.ledgers.create(ledger_id, metadata)
            await cluster.under_replication.mark(1, ["a"])
            await cluster.under_replication.mark(2, ["c", "b"])

    asyncio.run(fill())
    return found


def listed(uri: str, *arguments: str) -> list[dict[str, Any]]:
    done = CliRunner().invoke(cli, [*arguments, "--json", "--metadata", uri])
    assert done.exit_code == 0, done.output
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(("bookie", "ledgers"), [("a", [1]), ("b", [1, 2]), ("d", [2, 3]), ("z", [])])
def test_ledgers_are_listed_by_a_bookie_of_any_of_their_segments(uri: str, bookie: str, ledgers: list[int]) -> None:
    assert [row["ledger_id"] for row in listed(uri, "ledger", "list", "--bookie", bookie)] == ledgers


def test_the_limit_counts_ledgers_of_the_bookie(uri: str) -> None:
    assert [row["ledger_id"] for row in listed(uri, "ledger", "list", "--bookie", "d", "--limit", "1")] == [2]


@pytest.mark.parametrize(("bookie", "ledgers"), [("a", [1]), ("b", [2]), ("d", [])])
def test_marks_are_listed_by_a_missing_bookie(uri: str, bookie: str, ledgers: list[int]) -> None:
    assert [row["ledger"] for row in listed(uri, "cluster", "under-replicated", "--missing-on", bookie)] == ledgers
