"""Servers outlive signals that mean no end; commands end with a sentence when a standard stream is closed, full, or a pipe that ends."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.running import TIMEOUT_S, Up, command, environment, run
from tests.waiting import wait_until

HARMLESS = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE, signal.SIGWINCH)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    folder = tmp_path_factory.mktemp("streams")
    with Up(folder / "c", "--bookies", "3", "--nodes", "1", TRIPLICATE_NODE_AUDIT_LOG=str(folder / "audit.log")) as up:
        run("log", "create", "l", uri=up.uri)
        yield up


def shell(script: str, uri: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a shell's line in which `t` is the command."""
    return subprocess.run(
        ["/bin/bash", "-o", "pipefail", "-c", script.replace("t ", " ".join(command()) + " ", 1)],
        env=environment(TRIPLICATE_METADATA=uri),
        input=text,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def test_every_server_outlives_the_signals_that_mean_no_end(cluster: Up) -> None:
    pids = cluster.now_running()
    for number in HARMLESS:
        for pid in (*pids.values(), cluster.process.pid):
            subprocess.run(["kill", f"-{number.value}", str(pid)], check=True)
    logs = [cluster.folder / name / "log" for name in pids]
    wait_until(lambda: all("process.hangup" in log.read_text() for log in logs), TIMEOUT_S, "every server has noticed SIGHUP")
    wait_until(lambda: all("serve_process" in log.read_text() for log in logs), TIMEOUT_S, "every server has written its stacks at SIGUSR2")
    run("log", "append", "l", "still there", uri=cluster.uri)
    assert cluster.now_running() == pids
    assert len(cluster.alive()) == len(pids)
    assert cluster.process.poll() is None


def test_a_single_dash_is_standard_input(cluster: Up) -> None:
    run("log", "create", "dashed", uri=cluster.uri)
    run("log", "append", "dashed", "-", uri=cluster.uri, text="a\nb\n")
    assert run("log", "read", "dashed", uri=cluster.uri).stdout == "a\nb\n"
    ledger = run("ledger", "append", "new", "-", uri=cluster.uri, text="c\nd\n").stderr.split()[1]
    assert run("ledger", "read", ledger, uri=cluster.uri).stdout == "c\nd\n"


@pytest.mark.parametrize("arguments", ["log read l", "log list", "log list --json", "ledger list", "cluster status --json", "bookie list"])
@pytest.mark.parametrize(("stream", "reason"), [(">&-", "Bad file descriptor"), (">/dev/full", "No space left on device")])
def test_output_that_cannot_be_written_is_one_sentence(cluster: Up, arguments: str, stream: str, reason: str) -> None:
    run("log", "append", "l", "something", uri=cluster.uri)
    answer = shell(f"t {arguments} {stream}", cluster.uri)
    assert (answer.returncode, answer.stderr.strip()) == (1, f"triplicate: {reason}: standard output")


def test_a_reader_that_leaves_and_closed_streams_beside_the_output_are_no_errors(cluster: Up) -> None:
    many = "\n".join(f"record {number}" for number in range(20_000))
    run("log", "create", "many", uri=cluster.uri)
    run("log", "append", "many", uri=cluster.uri, text=many)
    answer = shell("t log read many | head -n 1", cluster.uri)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "record 0\n", "")
    answer = shell("t log read many 2>&- | tail -n 1", cluster.uri)
    assert (answer.returncode, answer.stdout) == (0, "record 19999\n")
    answer = shell("t log append l <&-", cluster.uri)
    assert answer.returncode == 0, answer.stderr
    answer = shell("t log append l x <&- >&- 2>&-", cluster.uri)
    assert answer.returncode == 1


def test_a_cluster_outlives_its_terminal(tmp_path: Path) -> None:
    """Its standard error fails from then on."""
    up = Up(tmp_path / "c", "--bookies", "1", "--nodes", "0", restart=True)
    try:
        assert up.process.stderr is not None
        up.process.stderr.close()
        up.process.send_signal(signal.SIGHUP)
        before = up.now_running()
        up.kill_member("bookie-1")
        wait_until(lambda: up.now_running().get("bookie-1") not in (None, before["bookie-1"]), TIMEOUT_S, "bookie-1 runs again")
        assert up.process.poll() is None
        up.process.send_signal(signal.SIGTERM)
        assert up.process.wait(TIMEOUT_S) == 0
    finally:
        up.process.kill()
        up.process.wait(TIMEOUT_S)
        for stream in (up.process.stdout, up.process.stderr):
            if stream is not None:
                stream.close()
