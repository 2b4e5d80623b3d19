"""`triplicate up`: starts, keeps its ports, ends cleanly, leaves nothing behind, and refuses with a reason."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.process.at_once import at_once
from tests.process.running import TIMEOUT_S, Member, Up, is_running, run, run_json, started
from tests.waiting import LIMIT_S, wait_until


def refused(folder: Path) -> str:
    """The error output of an `up` that cannot start."""
    answer = run("up", "--dir", str(folder), check=False)
    assert answer.returncode == 1, answer.stderr
    lines = answer.stderr.strip().splitlines()
    assert len(lines) == 1, answer.stderr
    return lines[0]


def probe(member: dict[str, Any], name: str) -> Any:
    """A process's answer to a probe: status and body."""
    url = member["metrics"].removesuffix("/metrics") + f"/{name}"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return json.loads(error.read())


def test_a_second_start_is_quick_and_keeps_every_port(tmp_path: Path) -> None:
    with Up(tmp_path / "c") as first:
        assert set(first.members) == {"bookie-1", "bookie-2", "bookie-3", "bookie-4", "node-1", "node-2", "node-3"}
        assert first.end(signal.SIGINT) == 0
        assert first.alive() == []
    assert not (tmp_path / "c" / "processes.json").exists()
    with Up(tmp_path / "c") as second:
        # The first start waits for nobody. One that waited for the sessions of the first run's processes would take ten seconds more.
        assert second.seconds < max(5.0, 2 * first.seconds)
        for name, member in first.members.items():
            assert second.members[name]["address"] == member["address"]
            assert second.members[name]["metrics"] == member["metrics"]
        assert second.end(signal.SIGTERM) == 0


def test_every_process_serves_metrics_on_loopback(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "1", "--nodes", "1") as up:
        for member in up.members.values():
            assert member["metrics"].startswith("http://127.0.0.1:")
            with urllib.request.urlopen(member["metrics"], timeout=10) as answer:
                text = answer.read().decode()
            assert "# TYPE " in text


def test_every_process_answers_probes_beside_its_metrics(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "2", "--nodes", "1") as up:
        at_once("database", "create", "shop", uri=up.uri)
        for name, member in up.members.items():
            assert probe(member, "health")["healthy"] is True, name
        assert probe(up.members["bookie-1"], "ready") == {
            "ready": True,
            "process": "bookie-1",
            "reasons": [],
            "bookie": "bookie-1",
            "writable": True,
            "registered": True,
        }
        wait_until(lambda: probe(up.members["node-1"], "ready").get("databases") != {}, TIMEOUT_S, "the node hosts the database")
        facts = probe(up.members["node-1"], "ready")
        assert list(facts["databases"]) == ["shop"]
        assert facts["ready"] is (facts["databases"]["shop"]["role"] in ("leader", "follower"))


def test_a_node_that_died_is_a_problem_and_a_cluster_that_is_stopped_names_its_folder(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "3", "--nodes", "2") as up:
        at_once("database", "create", "shop", uri=up.uri)
        at_once("kv", "create", "basket", uri=up.uri)
        at_once("log", "create", "events", uri=up.uri)
        wait_until(lambda: at_once("cluster", "status", uri=up.uri, check=False).stdout.startswith("HEALTHY"), TIMEOUT_S, "all copies")
        up.kill_member("node-2")
        text = "node node-2 does not run, and shop lacks a copy: start it, or remove it with triplicate node remove node-2"
        wait_until(lambda: text in at_once("cluster", "status", uri=up.uri, check=False).stdout, TIMEOUT_S, "the death is seen")
        assert "1 of 2 copies" in at_once("database", "show", "shop", uri=up.uri).stdout
        twice = run("bookie", "--config", str(tmp_path / "c" / "bookie-1" / "bookie.toml"), check=False)
        assert f"held by process {up.members['bookie-1']['pid']} " in twice.stderr
    for words in (("log", "append", "events", "x"), ("database", "create", "more")):
        refusal = at_once(*words, uri=up.uri, check=False).stderr
        assert (
            refusal == f"triplicate: no bookie of the cluster at {up.uri} runs: start `triplicate up --dir {up.folder}`, or its servers\n"
        )
    assert f"triplicate up --dir {up.folder}" in at_once("cluster", "status", uri=up.uri, check=False).stdout


def test_a_killed_up_leaves_no_process_and_the_folder_starts_again(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "2", "--nodes", "1") as up:
        assert len(up.alive()) == 3
        up.end(signal.SIGKILL)
        # Started at once, it waits for the orphans, which still lock their directories, and then starts.
        with Up(tmp_path / "c") as again:
            assert up.alive() == []
            assert again.members["bookie-1"]["address"] == up.members["bookie-1"]["address"]


def test_the_children_of_a_killed_up_end_by_themselves(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "2", "--nodes", "0") as up:
        up.end(signal.SIGKILL)
        wait_until(lambda: up.alive() == [], LIMIT_S, "no child is left")


def test_a_second_up_on_the_same_folder_is_refused_in_one_line(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "1", "--nodes", "0") as up:
        line = refused(tmp_path / "c")
        assert f"run by another triplicate (process {up.process.pid})" in line
        assert "stop that one, or name another --dir" in line


def test_a_folder_of_other_files_is_refused_and_unchanged(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    assert "holds no cluster; choose another --dir" in refused(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_port_in_use_is_named_in_one_line(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "1", "--nodes", "0") as up:
        host, _, port = up.members["bookie-1"]["address"].rpartition(":")
        up.end(signal.SIGTERM)
    with socket.socket() as holder:
        holder.bind((host, int(port)))
        holder.listen()
        line = refused(tmp_path / "c")
    assert "bookie-1 did not start" in line
    assert port in line


def test_the_directory_of_another_cluster_is_refused_in_one_line(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with Up(tmp_path / name, "--bookies", "1", "--nodes", "0") as up:
            up.end(signal.SIGTERM)
    shutil.copy(tmp_path / "b" / "metadata.db", tmp_path / "a" / "metadata.db")
    for leftover in ("metadata.db-wal", "metadata.db-shm"):
        (tmp_path / "a" / leftover).unlink(missing_ok=True)
    assert "belongs to cluster" in refused(tmp_path / "a")
    # Even where the folder's description agrees, the bookie knows its own cluster from its cookie.
    for name in ("a", "b"):
        content = json.loads((tmp_path / name / "cluster.json").read_text())
        content["instance_id"] = json.loads((tmp_path / "b" / "cluster.json").read_text())["instance_id"]
        (tmp_path / name / "cluster.json").write_text(json.dumps(content))
    assert "bookie-1 did not start" in refused(tmp_path / "a")


def test_lost_metadata_is_not_replaced_by_an_empty_one(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "1", "--nodes", "0") as up:
        up.end(signal.SIGTERM)
    for path in (tmp_path / "c").glob("metadata.db*"):
        path.rename(tmp_path / path.name)
    assert "metadata.db is missing" in refused(tmp_path / "c")


def test_a_dead_bookie_is_reported_with_the_command_that_starts_it(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "1", "--nodes", "0") as up:
        up.kill_member("bookie-1")
        output = up.read_errors_until("--config")
        assert "bookie-1 was killed by signal 9" in output
        assert "triplicate bookie --config" in output
        wait_until(lambda: up.now_running() == {}, TIMEOUT_S, "the end is noted")


def test_killed_processes_are_started_again_and_end_with_up(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "3", "--nodes", "1", "--metrics-port", "0", restart=True) as up:
        at_once("database", "create", "shop", uri=up.uri)
        for name in ("bookie-2", "node-1"):
            up.kill_member(name)
            output = up.read_errors_until(f"{name} serves again")
            assert re.search(rf"^\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ {name} was killed by signal 9;", output, re.MULTILINE), output
            assert is_running(up.now_running()[name])
            assert up.now_running()[name] != up.members[name]["pid"]
            assert probe(up.members[name], "health")["healthy"] is True, "at its old port"
        at_once("ledger", "append", "new", "x", uri=up.uri)
        assert len(up.alive()) == 4
        wait_until(lambda: probe(up.facts, "ready")["ready"] is True, TIMEOUT_S, "the whole cluster is ready")
        assert set(probe(up.facts, "ready")["processes"]) == set(up.members)
        assert probe(up.facts, "health")["healthy"] is True
        with urllib.request.urlopen(up.facts["metrics"], timeout=10) as answer:
            assert b"triplicate_up_restarts 2.0" in answer.read()
        assert up.end(signal.SIGINT) == 0
        assert up.alive() == []
    assert not (tmp_path / "c" / "processes.json").exists()


def test_a_restarted_process_ends_with_a_killed_up_and_the_next_up_waits_for_it(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "1", "--nodes", "0", restart=True) as up:
        up.kill_member("bookie-1")
        up.read_errors_until("bookie-1 serves again")
        again = up.now_running()["bookie-1"]
        up.end(signal.SIGKILL)
        with Up(tmp_path / "c"):
            assert not is_running(again)


def test_up_ends_in_order_while_a_process_is_being_started_again(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "1", "--nodes", "0", restart=True) as up:
        up.kill_member("bookie-1")
        wait_until(
            lambda: up.now_running().get("bookie-1", up.members["bookie-1"]["pid"]) != up.members["bookie-1"]["pid"], 30.0, "a start"
        )
        assert up.end(signal.SIGINT) == 0
        assert up.alive() == []


@pytest.mark.deep
def test_a_process_that_cannot_start_again_is_reported_and_tried_at_growing_intervals(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "1", "--nodes", "1", restart=True) as up:
        config = tmp_path / "c" / "bookie-1" / "bookie.toml"
        good = config.read_text()
        config.write_text(good.replace("[bookie]", "[bookie]\nprot = 1"))
        up.kill_member("bookie-1")
        delays = []
        for _ in range(3):
            output = up.read_errors_until("next try in")
            assert "bookie-1 did not start: unknown setting bookie.prot" in output
            delays.append(float(output.rpartition("next try in ")[2].split()[0]))
        # Each is drawn from the upper half of a step twice as long as the one before.
        assert delays[0] <= delays[1] <= delays[2]
        assert delays[0] < delays[2]
        assert probe(up.members["node-1"], "health")["healthy"] is True, "the others continue"
        config.write_text(good)
        up.read_errors_until("bookie-1 serves again")


def test_up_serves_without_a_bookie_that_cannot_start(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "4", "--nodes", "1") as up:
        at_once("ledger", "append", "new", "x", uri=up.uri)
        up.end(signal.SIGTERM)
    (cookie,) = (tmp_path / "c" / "bookie-2").glob("**/journal*/**/VERSION")
    cookie.unlink()
    with Up(tmp_path / "c", restart=True) as up:
        assert up.facts["missing"] == ["bookie-2"]
        assert set(up.members) == {"bookie-1", "bookie-3", "bookie-4", "node-1"}
        at_once("ledger", "append", "new", "x", uri=up.uri)
        output = up.read_errors_until("next try in")
        assert "bookie-2 did not start: " in output


@pytest.mark.deep
def test_a_node_that_stands_still_is_started_again(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "1", "--nodes", "1", "--silence-limit", "1", restart=True) as up:
        os.kill(up.members["node-1"]["pid"], signal.SIGSTOP)
        output = up.read_errors_until("node-1 serves again")
        assert re.search(r"node-1 has not answered for \d+ s and is killed; the stacks of its threads are at the end of ", output), output
        assert "node-1 was killed by signal 9; the others continue" in output


def test_a_process_started_by_hand_is_named_by_the_next_up(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "1", "--nodes", "1") as up:
        up.kill_member("node-1")
        with Member(tmp_path / "c", "node-1") as member:
            up.end(signal.SIGTERM)
            line = refused(tmp_path / "c")
            assert f"node-1 did not start: it runs already as process {member.process.pid}" in line
            assert f"end it (kill {member.process.pid}), then try again" in line


@pytest.mark.skipif(psutil.disk_usage(tempfile.gettempdir()).percent <= 2, reason="the disk is too empty to count as full at 1 %")
def test_a_read_only_bookie_is_reported_when_the_cluster_is_ready(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "2", "--nodes", "0") as up:
        assert up.facts["read_only"] == []
        up.end(signal.SIGTERM)
    config = tmp_path / "c" / "bookie-2" / "bookie.toml"
    config.write_text(config.read_text().replace("[bookie]", "[bookie]\ndisk_usage_threshold = 0.01\ndisk_usage_low_water = 0.01"))
    with started("up", "--dir", str(tmp_path / "c")) as up_again:
        assert up_again.stderr is not None
        output = ""
        while "ready;" not in output:
            line = up_again.stderr.readline()
            assert line, output
            output += line
        assert "ready; 1 of 2 bookies are read-only (bookie-2): they accept no new entries, for want of disk space or by request" in output
        up_again.send_signal(signal.SIGINT)
        up_again.communicate(timeout=TIMEOUT_S)


def test_the_table_shows_processes_and_their_addresses(tmp_path: Path) -> None:
    with started("up", "--dir", str(tmp_path / "c"), "--bookies", "1", "--nodes", "0") as up:
        assert up.stderr is not None
        output = ""
        while "ready; Ctrl-C" not in output:
            line = up.stderr.readline()
            assert line, output
            output += line
        up.send_signal(signal.SIGINT)
        out, _ = up.communicate(timeout=TIMEOUT_S)
        assert up.returncode == 0
    assert "bookie-1" in out
    assert "127.0.0.1:" in out
    assert f"TRIPLICATE_METADATA=sqlite://{tmp_path}/c/metadata.db" in " ".join(output.split())


def test_a_cluster_does_not_join_the_one_that_the_shell_names(tmp_path: Path) -> None:
    with (
        Up(tmp_path / "first", "--bookies", "1", "--nodes", "0") as first,
        Up(tmp_path / "second", "--bookies", "2", "--nodes", "1", TRIPLICATE_METADATA=first.uri) as second,
    ):
        assert set(second.members) == {"bookie-1", "bookie-2", "node-1"}
        registered = [[one["bookie_id"] for one in run_json("bookie", "list", uri=up.uri)["bookies"]] for up in (first, second)]
        assert registered == [["bookie-1"], ["bookie-1", "bookie-2"]]
        assert second.end(signal.SIGTERM) == 0
    assert f"ignored for the processes of {tmp_path}/second, whose settings files and folder decide: TRIPLICATE_METADATA\n" in second.errors
