"""The operator's commands against real processes: a bookie that is killed is shown as lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.process.at_once import at_once, json_at_once
from tests.process.running import Up, run, started
from tests.waiting import LIMIT_S, wait_until


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    with Up(tmp_path / "c", "--bookies", "4", "--nodes", "1", heals=False) as up:
        yield up


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A cluster for tests that leave it as it is."""
    with Up(tmp_path_factory.mktemp("shared") / "c", "--bookies", "4", "--nodes", "0", heals=False) as up:
        yield up


def status(uri: str, expected: int) -> dict[str, Any]:
    answer = run("cluster", "status", "--json", uri=uri, check=False)
    assert answer.returncode == expected, answer.stdout + answer.stderr
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def is_lost(uri: str, bookie_id: str) -> bool:
    answer = at_once("bookie", "list", "--quick", "--json", uri=uri, check=False)
    listed = json.loads(answer.stdout)["bookies"] if answer.stdout else []
    return any((one["bookie_id"], one["state"]) == (bookie_id, "lost") for one in listed)


def ensemble_of_the_open_ledger(uri: str) -> list[str]:
    """The bookies of the only ledger that has a writer: the database's. Chance chooses them."""

    def opened() -> list[int]:
        return [one["ledger_id"] for one in json_at_once("ledger", "list", uri=uri) if one["state"] == "open"]

    wait_until(lambda: len(opened()) == 1, LIMIT_S, "the leader has begun its first ledger")
    (ledger,) = opened()
    ensemble: list[str] = json_at_once("ledger", "show", str(ledger), uri=uri)["segments"][-1]["ensemble"]
    return ensemble


def test_a_killed_bookie_is_lost_in_status_and_list(up: Up) -> None:
    at_once("ledger", "append", "new", "--ensemble", "4", "--write-quorum", "4", "x", uri=up.uri)
    at_once("database", "create", "shop", uri=up.uri)
    wait_until(lambda: at_once("cluster", "status", uri=up.uri, check=False).returncode == 0, LIMIT_S, "the cluster is healthy")
    screen = at_once("cluster", "status", uri=up.uri).stdout
    assert screen.startswith("HEALTHY: cluster ")
    assert "BOOKIES 4: 4 writable" in screen
    assert "DATABASES 1 on 1 node" in screen
    listed = json.loads(at_once("bookie", "list", "--json", uri=up.uri).stdout)
    assert [(one["bookie_id"], one["state"], one["ledgers"] >= 1) for one in listed["bookies"]] == [
        (f"bookie-{number}", "writable", True) for number in range(1, 5)
    ]
    assert all(one["free_bytes"] <= one["total_bytes"] for one in listed["bookies"])

    assert at_once("cluster", "safe-to-stop", "bookie-1", uri=up.uri).stdout.startswith("yes: bookie-1 can be stopped now")
    copies = ensemble_of_the_open_ledger(up.uri)
    most = at_once("cluster", "safe-to-stop", *copies[:2], uri=up.uri, check=False)
    assert most.returncode == 1
    assert "no ack quorum" in most.stdout
    assert "log database.shop." in most.stdout
    every = at_once("cluster", "safe-to-stop", *copies, uri=up.uri, check=False)
    assert every.returncode == 1
    assert "no copy of some entries" in every.stdout

    up.kill_member("bookie-4")
    wait_until(lambda: at_once("cluster", "status", uri=up.uri, check=False).returncode == 1, LIMIT_S, "the status shows a problem")
    wait_until(lambda: status(up.uri, 1)["problems"][0]["text"].startswith("1 bookie is lost: bookie-4 ("), LIMIT_S, "the bookie is lost")
    answer = at_once("bookie", "list", uri=up.uri, check=False)
    assert answer.returncode == 1
    assert any("bookie-4" in line and "lost" in line for line in answer.stdout.splitlines())
    quick = at_once("bookie", "--metadata", up.uri, "list", "--quick", "--json", check=False)
    assert {one["bookie_id"]: one["ledgers"] for one in json.loads(quick.stdout)["bookies"]}["bookie-4"] is None


def test_watch_shows_the_state_again(shared: Up) -> None:
    with started("cluster", "status", "--watch", "0.2", "--json", uri=shared.uri) as watching:
        assert watching.stdout is not None
        first, second = (json.loads(watching.stdout.readline()) for _ in range(2))
    assert first["time_ms"] < second["time_ms"]
    assert len(second["bookies"]["items"]) == 4


def test_a_ledger_with_a_killed_bookie_is_not_complete_and_can_be_marked(up: Up) -> None:
    made = at_once("ledger", "append", "new", "--ensemble", "4", "--write-quorum", "4", "--json", "a", "b", "c", uri=up.uri)
    ledger = str(json.loads(made.stdout)["ledger_id"])
    # An ack quorum closes the ledger; the last copies may still be on their way.
    wait_until(lambda: at_once("ledger", "check", ledger, uri=up.uri, check=False).returncode == 0, LIMIT_S, "the copies are stored")
    whole = at_once("ledger", "check", ledger, "--read", uri=up.uri)
    assert f"ledger {ledger}: 3 entries, closed; every copy of them is there" in whole.stdout
    up.kill_member("bookie-2")
    wait_until(lambda: is_lost(up.uri, "bookie-2"), LIMIT_S, "the bookie is lost")
    answer = at_once("ledger", "check", ledger, "--mark", "--json", uri=up.uri, check=False)
    assert answer.returncode == 1, answer.stderr
    facts = json.loads(answer.stdout)
    assert (facts["complete"], facts["marked"], facts["without_copy"]) == (False, ["bookie-2"], [])
    assert {one["bookie_id"]: one["has"] for one in facts["bookies"]} == {"bookie-1": 3, "bookie-2": 0, "bookie-3": 3, "bookie-4": 3}
    marks = status(up.uri, 1)["marks"]["items"]
    assert [(one["ledger_id"], one["missing"]) for one in marks] == [(int(ledger), ["bookie-2"])]
    # All four bookies are in the ensemble, so no other one can get the copies.
    refused = at_once("ledger", "check", ledger, "--repair", "--json", uri=up.uri, check=False)
    assert refused.returncode == 1, refused.stderr
    facts = json.loads(refused.stdout)
    assert facts["complete"] is facts["before"]["complete"] is False
    assert (facts["repair"]["outcome"], facts["repair"]["copies"]) == ("failed", [])
    assert facts["repair"]["reason"].startswith("no bookie for the copies of bookie-2 in the segment of entries 0 to 2")


def output_of(*arguments: str) -> str:
    return at_once(*arguments).stdout


def lines_of(kind: str, path: Path, ledger: int) -> list[dict[str, Any]]:
    """The lines of a dump about a ledger."""
    return [json.loads(line) for line in output_of("dump", kind, str(path), "--ledger", str(ledger), "--json").splitlines()]


def test_running_bookies_are_kept_up_and_their_files_printed(shared: Up) -> None:
    cluster = ("--metadata", shared.uri)
    made = output_of("ledger", "append", "new", "--ensemble", "4", "--write-quorum", "4", "--json", *cluster, "a", "b", "c")
    ledger = json.loads(made)["ledger_id"]
    flushed = json.loads(output_of("bookie", "flush", "--all", "--json", *cluster))
    assert [(one["bookie"], one["state"]) for one in flushed] == [(f"bookie-{number}", "done") for number in range(1, 5)]
    assert output_of("bookie", "gc", "bookie-1", "--force", *cluster).startswith("bookie bookie-1: 0 of ")
    assert "collection rests" in output_of("bookie", "gc", "bookie-1", "--status", *cluster)

    folder = shared.folder / "bookie-1"
    for kind, directory in (("journal", "journal"), ("entry-log", "ledgers")):
        assert [line["entry"] for line in lines_of(kind, folder / directory, ledger) if line["kind"] == "entry"] == [0, 1, 2]
    assert [(row["first"], row["last"]) for row in lines_of("index", folder / "ledgers", ledger) if row["kind"] == "run"] == [(0, 2)]

    output_of("cluster", "freeze-ensembles", "on", "--reason", "a switch is replaced", *cluster)
    assert any("a switch is replaced" in problem["text"] for problem in status(shared.uri, 1)["problems"])
    assert output_of("cluster", "freeze-ensembles", "off", *cluster) == "the freeze of ensembles has ended\n"
