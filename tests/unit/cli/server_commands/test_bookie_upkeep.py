"""Bookies collect, compact and flush on request and say what they did; one that does not read requests is named."""

from __future__ import annotations

import asyncio
import dataclasses
import json

import pytest
from click.testing import CliRunner

from tests.unit.client.cluster import fake_cluster, run
from tests.unit.client.real_cluster import RealCluster, real_cluster
from triplicate.cli.main import cli
from triplicate.cli.server_commands import bookie_upkeep
from triplicate.cli.server_commands.bookie_upkeep import answer_json, answer_text, request_upkeep
from triplicate.errors import MetadataError
from triplicate.metadata import UpkeepAction, UpkeepRequest, UpkeepState

LIMIT_S = 120.0


async def of_a(cluster: RealCluster, action: UpkeepAction, *, force: bool = False) -> UpkeepRequest:
    return (await request_upkeep(cluster.host, cluster.metadata, ["a"], action, force=force, limit_s=LIMIT_S))["a"]


def test_a_deleted_ledger_is_collected_on_request() -> None:
    async def body() -> None:
        async with real_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            await writer.append_many([b"x" * 1000] * 50)
            await writer.close()
            flushed = await of_a(cluster, UpkeepAction.FLUSH)
            assert (flushed.state, flushed.facts["flushes"]) == (UpkeepState.DONE, 1)
            assert flushed.facts["cached_bytes"] > 50_000
            assert answer_text(await of_a(cluster, UpkeepAction.FLUSH)).startswith("nothing to flush in ")
            # Past the trash: a deletion that keeps no record.
            await cluster.metadata.trash.delete(writer.ledger_id, 0.0)
            answers = await request_upkeep(cluster.host, cluster.metadata, "abc", UpkeepAction.GC, force=True, limit_s=LIMIT_S)
            assert {name: answer.facts["collection"]["ledgers"] for name, answer in answers.items()} == {"a": 1, "b": 1, "c": 1}
            assert answers["a"].facts["compaction"]["threshold"] == cluster.bookies["a"].settings.major_compaction_threshold
            assert answer_text(answers["a"]).startswith("1 of 1 ledgers deleted, ")
            compacted = await of_a(cluster, UpkeepAction.COMPACT)
            assert compacted.facts["compaction"]["threshold"] == cluster.bookies["a"].settings.compaction_threshold
            state = await of_a(cluster, UpkeepAction.STATUS)
            assert (state.facts["collection_since_ms"], state.facts["last_collection"]["ledgers"]) == (None, 1)
            assert answer_text(state).startswith("collection rests, last: 1 of 1 ledgers deleted, ")
            assert await cluster.metadata.upkeep_requests.names("a") == []

    run(body())


def test_the_state_shows_a_round_that_runs_and_a_second_round_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        async with real_cluster() as cluster:
            garbage = cluster.bookies["a"].parts.garbage
            begun, go, original, rounds = asyncio.Event(), asyncio.Event(), garbage._missing, [0]

            async def held_back(held: list[int]) -> list[int]:
                rounds[0] += 1
                begun.set()
                await go.wait()
                return await original(held)

            monkeypatch.setattr(garbage, "_missing", held_back)
            first = asyncio.create_task(of_a(cluster, UpkeepAction.GC))
            await begun.wait()
            second = asyncio.create_task(of_a(cluster, UpkeepAction.GC))
            state = await of_a(cluster, UpkeepAction.STATUS)
            assert state.facts["collection_since_ms"] is not None
            assert answer_text(state).startswith("collection runs, last: none since the start; compaction rests")
            for _ in range(5):
                await of_a(cluster, UpkeepAction.STATUS)  # The second request has arrived by then.
            assert rounds == [1]
            go.set()
            assert [(await first).state, (await second).state] == [UpkeepState.DONE] * 2
            assert rounds == [2]

    run(body())


def test_a_round_that_fails_says_why_and_the_bookie_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        async with real_cluster() as cluster:
            garbage, original = cluster.bookies["a"].parts.garbage, cluster.bookies["a"].parts.garbage._missing

            async def away(held: list[int]) -> list[int]:
                raise MetadataError("the metadata is away")

            monkeypatch.setattr(garbage, "_missing", away)
            failed = await of_a(cluster, UpkeepAction.GC)
            assert (failed.state, failed.problem) == (UpkeepState.FAILED, "the metadata is away")
            assert answer_text(failed) == "the metadata is away"
            monkeypatch.setattr(garbage, "_missing", original)
            assert (await of_a(cluster, UpkeepAction.GC)).state is UpkeepState.DONE
            assert cluster.bookies["a"].ended_loops == []

    run(body())


def test_a_bookie_that_does_not_read_requests_is_named_and_the_request_withdrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        async with fake_cluster() as cluster:
            monkeypatch.setattr(bookie_upkeep, "BEGIN_LIMIT_S", 0.1)
            answers = await request_upkeep(cluster.host, cluster.metadata, ["a"], UpkeepAction.GC, limit_s=LIMIT_S)
            assert answers["a"].state is UpkeepState.FAILED
            assert "it has not begun within" in answers["a"].problem
            assert "of Apache's" in answers["a"].problem
            assert await cluster.metadata.upkeep_requests.names("a") == []

    run(body())


def test_an_answer_is_printed_with_its_figures() -> None:
    report = {"ledgers": 2, "held": 5, "trash": 1, "freed_bytes": 2048, "began_ms": 1, "ended_ms": 2}
    done = UpkeepRequest(UpkeepAction.GC, state=UpkeepState.DONE, facts={"collection": report, "seconds": 0.25})
    assert answer_text(done) == "2 of 5 ledgers deleted, 1 in the trash, 2.0 KiB freed in 0.25 s"
    assert answer_json("a", done) == {
        "bookie": "a",
        "action": "gc",
        "force": False,
        "state": "done",
        "problem": None,
        "collection": report,
        "seconds": 0.25,
    }
    assert answer_text(dataclasses.replace(done, state=UpkeepState.FAILED, problem="no room")) == "no room"


@pytest.mark.parametrize("arguments", [["gc"], ["gc", "a", "--all"], ["gc", "a", "--force", "--status"], ["flush"], ["compact"]])
def test_a_command_without_or_with_two_choices_is_wrong_usage(arguments: list[str]) -> None:
    assert CliRunner().invoke(cli, ["bookie", *arguments, "--metadata", "sqlite:///nowhere"]).exit_code == 2


def test_the_command_names_bookies_that_are_not_registered(tmp_path: object) -> None:
    uri = f"sqlite://{tmp_path}/metadata.db"
    assert CliRunner().invoke(cli, ["cluster", "init", uri]).exit_code == 0
    done = CliRunner().invoke(cli, ["bookie", "gc", "a", "--metadata", uri])
    assert (done.exit_code, str(done.exception)) == (1, "not registered: a; there are: none")
    everywhere = CliRunner().invoke(cli, ["bookie", "flush", "--all", "--json", "--metadata", uri])
    assert (everywhere.exit_code, json.loads(everywhere.stdout)) == (0, [])
