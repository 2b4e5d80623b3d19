"""The processes of a local cluster: what is launched later belongs to it as what is started first."""

from __future__ import annotations

import errno
import json
import os
import select
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.waiting import LIMIT_S, wait_until
from triplicate.cli.supervision import local_processes
from triplicate.cli.supervision.cluster_folder import ClusterFolder, ClusterMember
from triplicate.cli.supervision.local_processes import LocalCluster, RunningProcess, process_start
from triplicate.errors import EnvironmentFault

PROGRAM = """
import json, os, sys, time
parent, pipe = (int(sys.argv[sys.argv.index(flag) + 1]) for flag in ("--parent-pipe", "--ready-pipe"))
behaviour = open(sys.argv[sys.argv.index("--config") + 1]).read()
print("said its last", flush=True)
if "fail" in behaviour:
    sys.exit(3)
if "late" in behaviour:
    while not os.path.exists(behaviour.split()[2]):
        time.sleep(0.01)
positions = {f"database {number}": number for number in range(10_000)} if "many databases" in behaviour else {}
os.write(pipe, json.dumps({"address": os.environ.get("TRIPLICATE_METADATA", "here"), **positions}).encode() + b"\\n")
os.close(pipe)
os.read(parent, 1)
"""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    """One bookie; its process is a small program that serves, fails or is late where its settings say so."""
    with cluster_of(tmp_path, monkeypatch, "bookie-1") as made:
        yield made


@contextmanager
def cluster_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> Iterator[LocalCluster]:
    folder = ClusterFolder(tmp_path, "id", tuple(ClusterMember(name, "bookie", 0, 0) for name in names))
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "bookie.toml").write_text("")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    stand_in, real = tmp_path / "python", sys.executable
    stand_in.write_text(f'#!/bin/sh\nshift 2\nexec {real} {program} "$@"\n')
    stand_in.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(stand_in))
    with LocalCluster(folder) as made:
        yield made


def noted(cluster: LocalCluster) -> dict[str, int]:
    found: dict[str, int] = json.loads((cluster.folder.path / "processes.json").read_text())["processes"]
    return found


def test_a_launched_process_is_noted_and_ends_with_the_cluster(cluster: LocalCluster) -> None:
    cluster.launch("bookie-1")
    assert "bookie-1" in cluster.running
    pid = cluster.running["bookie-1"].process.pid
    assert noted(cluster) == {"bookie-1": pid}
    wait_until(lambda: [one.member.name for one in cluster.newly_ready()] == ["bookie-1"], LIMIT_S, "the bookie is ready")
    assert cluster.running["bookie-1"].facts == {"address": "here"}
    assert cluster.newly_ready() == []
    assert cluster.ended() == []
    cluster.close()
    assert process_start(pid) is None
    assert not (cluster.folder.path / "processes.json").exists()


def test_the_variable_of_another_cluster_reaches_no_process_at_start_or_restart(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIPLICATE_METADATA", "sqlite:///other/metadata.db")
    cluster.start("bookie-1")
    assert cluster.running["bookie-1"].facts == {"address": "here"}
    cluster.kill("bookie-1")
    cluster.ended()
    cluster.launch("bookie-1")
    wait_until(lambda: [one.facts for one in cluster.newly_ready()] == [{"address": "here"}], LIMIT_S, "the bookie is ready")


@pytest.mark.parametrize("later", [False, True])
def test_a_node_with_thousands_of_databases_says_more_than_one_read_of_a_pipe_brings(cluster: LocalCluster, *, later: bool) -> None:
    cluster.folder.config_of(cluster.folder.members[0]).write_text("# many databases")
    if later:
        cluster.launch("bookie-1")
        wait_until(lambda: [one.member.name for one in cluster.newly_ready()] == ["bookie-1"], LIMIT_S, "the bookie is ready")
    else:
        cluster.start("bookie-1")
    assert cluster.running["bookie-1"].facts["database 9999"] == 9999


def test_a_launched_process_that_ends_before_it_serves_is_reported_with_its_last_words(cluster: LocalCluster) -> None:
    cluster.folder.config_of(cluster.folder.members[0]).write_text("# fail")
    cluster.launch("bookie-1")
    gone = []

    def ended() -> bool:
        assert cluster.newly_ready() == []
        gone.extend(cluster.ended())
        return bool(gone)

    wait_until(ended, LIMIT_S, "the process ends")
    assert gone[0].process.returncode == 3
    assert "bookie-1 did not start: said its last" in cluster.why_not_started(gone[0].member)
    assert cluster.running == {}
    assert noted(cluster) == {}


def test_a_cluster_that_ends_while_a_process_starts_leaves_none(cluster: LocalCluster) -> None:
    cluster.launch("bookie-1")
    pid = cluster.running["bookie-1"].process.pid
    cluster.close()
    assert process_start(pid) is None


def test_a_full_disk_does_not_end_the_cluster(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(local_processes, "write_json", full)
    cluster.launch("bookie-1")
    cluster.kill("bookie-1")
    assert [one.member.name for one in cluster.ended()] == ["bookie-1"]

    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(local_processes, "write_json", broken)
    with pytest.raises(OSError, match="Input/output"):
        cluster.launch("bookie-1")


def test_the_last_words_are_looked_for_at_the_end_of_a_log_and_need_no_log(cluster: LocalCluster) -> None:
    member = cluster.folder.members[0]
    assert "its log cannot be read (No such file or directory)" in cluster.why_not_started(member)
    with open(cluster.folder.log_of(member), "wb") as log:
        log.truncate(1 << 32)  # As a long one; reading all of it would take its size of memory.
        log.seek(0, os.SEEK_END)
        log.write(b"\nsaid its last\n")
    assert "bookie-1 did not start: said its last" in cluster.why_not_started(member)


def test_the_others_serve_without_one_that_fails_and_one_that_is_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ready(cluster: LocalCluster, waiting: Mapping[int, RunningProcess]) -> dict[str, str]:
        """The limit passes when two of three have answered, however quick the machine is."""
        monkeypatch.setattr(local_processes, "START_TIMEOUT_S", 0.0)
        waits = {one.member.name: pipe for pipe, one in waiting.items()}
        assert all(select.select([waits[name]], [], [], LIMIT_S)[0] for name in ("bookie-1", "bookie-3"))
        return await_ready(cluster, waiting)

    await_ready = LocalCluster._await_ready
    monkeypatch.setattr(LocalCluster, "_await_ready", ready)
    with cluster_of(tmp_path, monkeypatch, "bookie-1", "bookie-2", "bookie-3") as cluster:
        failing, late, _ = cluster.folder.members
        cluster.folder.config_of(failing).write_text("# fail")
        cluster.folder.config_of(late).write_text(f"# late {tmp_path / 'go'}")
        cluster.start()
        assert [bool(cluster.running[name].facts) for name in ("bookie-1", "bookie-2", "bookie-3")] == [False, False, True]
        wait_until(lambda: [one.member.name for one in cluster.ended()] == ["bookie-1"], LIMIT_S, "it has failed")
        (tmp_path / "go").touch()
        wait_until(lambda: [one.member.name for one in cluster.newly_ready()] == ["bookie-2"], LIMIT_S, "the late one is ready")


def test_a_start_fails_where_nothing_of_a_kind_serves(cluster: LocalCluster) -> None:
    cluster.folder.config_of(cluster.folder.members[0]).write_text("# fail")
    with pytest.raises(EnvironmentFault, match="bookie-1 did not start: said its last"):
        cluster.start()
