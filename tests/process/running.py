"""Real processes for tests: `triplicate up` in a folder, commands against it, and its remaining processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from tests.waiting import LIMIT_S, wait_until

TIMEOUT_S = 60.0


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "triplicate.cli.main", *arguments]


def environment(**more: str) -> dict[str, str]:
    """This process's environment without settings of a developer's shell."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRIPLICATE_")}
    return {**kept, **more}


def run(
    *arguments: str, uri: str | None = None, text: str | None = None, check: bool = True, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end. `settings` are environment variables."""
    more = {**settings, **({"TRIPLICATE_METADATA": uri} if uri else {})}
    answer = subprocess.run(
        command(*arguments),
        env=environment(**more),
        input=text if text is not None else "",
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert not check or answer.returncode == 0, answer.stderr
    return answer


def run_json(*arguments: str, uri: str) -> Any:
    return json.loads(run(*arguments, "--json", uri=uri).stdout)


@contextlib.contextmanager
def started(*arguments: str, uri: str | None = None, **settings: str) -> Iterator[subprocess.Popen[str]]:
    """A running command with pipes; killed at the end of the block if it still runs. `settings` are environment variables."""
    more = {**settings, **({"TRIPLICATE_METADATA": uri} if uri else {})}
    pipe = subprocess.PIPE
    with subprocess.Popen(command(*arguments), env=environment(**more), text=True, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


class Up:
    """A running `triplicate up`. Use it as a context manager; it is killed at the end if it still runs.

    Args:
        restart: whether it restarts processes that end; most tests restart them themselves.
        heals: whether its bookies run auto-recovery. Tests of marks and of repairs by hand switch it off.
        settings: environment variables of all its processes.
    """

    def __init__(self, folder: Path, *arguments: str, restart: bool = False, heals: bool = True, **settings: str) -> None:
        started = time.monotonic()
        self.folder = folder
        self.errors = ""
        self.process = subprocess.Popen(
            command("up", "--dir", str(folder), "--json", *([] if restart else ["--no-restart"]), *arguments),
            env=environment(**({} if heals else {"TRIPLICATE_AUTORECOVERY_IN_BOOKIE": "false"}), **settings),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.end(signal.SIGKILL)
            raise AssertionError(f"up did not start: {self.errors}")
        self.seconds = time.monotonic() - started
        self.facts = json.loads(line)
        self.uri: str = self.facts["metadata"]
        self.members: dict[str, dict[str, Any]] = {one["name"]: one for one in self.facts["processes"]}
        self.children = [psutil.Process(one["pid"]) for one in self.members.values()]

    def __enter__(self) -> Up:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.end(signal.SIGTERM)
        self.process.communicate()

    def end(self, number: int) -> int:
        """Send a signal and wait for the end; returns the exit code."""
        self.process.send_signal(number)
        _, self.errors = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode

    def kill_member(self, name: str) -> None:
        """SIGKILL one of its processes and wait for its end."""
        pid = self.members[name]["pid"]
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_running(pid), LIMIT_S, f"{name} is gone")

    def now_running(self) -> dict[str, int]:
        """Process ids by name, as `up` has noted them last."""
        found: dict[str, int] = json.loads((self.folder / "processes.json").read_text())["processes"]
        known = {child.pid for child in self.children}
        self.children += [psutil.Process(pid) for pid in found.values() if pid not in known and psutil.pid_exists(pid)]
        return found

    def read_errors_until(self, text: str) -> str:
        """Read standard error until a line contains the text; returns all that was read. Only before `end`."""
        assert self.process.stderr is not None
        output = ""
        while text not in output:
            line = self.process.stderr.readline()
            assert line, output
            output += line
        return output

    def alive(self) -> list[int]:
        return [child.pid for child in self.children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]


class Member:
    """One process of a cluster's folder started by hand, with the command that `up` prints after its end."""

    def __init__(self, folder: Path, name: str) -> None:
        kind = name.partition("-")[0]
        configuration = "zoo.cfg" if kind == "zookeeper" else f"{kind}.toml"
        ready_read, ready_write = os.pipe()
        self.process = subprocess.Popen(
            command(kind, "--config", str(folder / name / configuration), "--ready-pipe", str(ready_write)),
            env=environment(),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(ready_write,),
            text=True,
        )
        os.close(ready_write)
        self.line = os.read(ready_read, 65536)
        os.close(ready_read)
        assert self.line, self.process.communicate(timeout=TIMEOUT_S)[1]

    def __enter__(self) -> Member:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.communicate(timeout=TIMEOUT_S)


def is_running(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
