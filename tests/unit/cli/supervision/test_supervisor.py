"""`up` starts again what ends, at intervals that grow to a bound, and reports each restart."""

from __future__ import annotations

import itertools
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from triplicate.cli.supervision.cluster_folder import ClusterFolder, ClusterMember
from triplicate.cli.supervision.local_processes import RunningProcess
from triplicate.cli.supervision.supervisor import DUMP_S, FIRST_S, LONGEST_S, ROUNDS_MIN, SILENT_S, STEADY_S, Supervisor
from triplicate.errors import EnvironmentFault

MEMBER = ClusterMember("bookie-1", "bookie", 20_000, 20_001)


class Processes:
    """One bookie; the test decides what becomes of it."""

    def __init__(self) -> None:
        self.folder = ClusterFolder(Path("/c"), "id", (MEMBER,))
        self.running: dict[str, RunningProcess] = {"bookie-1": self.process()}
        self.launched: list[float] = []
        self.sent: list[signal.Signals] = []
        self.now = 0.0
        self.refusal: Exception | None = None
        self._ready: list[RunningProcess] = []
        self._ended: list[RunningProcess] = []

    def process(self) -> RunningProcess:
        return RunningProcess(MEMBER, cast("Any", SimpleNamespace(pid=7, returncode=None)), {"address": "127.0.0.1:20000"})

    def launch(self, name: str) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.launched.append(self.now)
        self.running[name] = self.process()

    def send(self, name: str, number: signal.Signals) -> None:
        assert name in self.running
        self.sent.append(number)

    def serves(self) -> None:
        self._ready.append(self.running["bookie-1"])

    def ends(self, code: int) -> None:
        one = self.running.pop("bookie-1")
        cast("Any", one.process).returncode = code
        self._ended.append(one)

    def newly_ready(self) -> list[RunningProcess]:
        found, self._ready = self._ready, []
        return found

    def ended(self) -> list[RunningProcess]:
        found, self._ended = self._ended, []
        return found

    def why_not_started(self, member: ClusterMember) -> str:
        return f"{member.name} did not start: no disk"


class Play:
    """A supervisor over them, with the clock in the test's hand."""

    def __init__(self, *, restart: bool = True, silence_limit_s: float | None = 60.0, served: bool = True) -> None:
        self.processes = Processes()
        if not served:
            self.processes.running["bookie-1"].facts = {}
        self.told: list[str] = []
        self.supervisor = Supervisor(
            self.processes,
            restart=restart,
            silence_limit_s=silence_limit_s,
            report=self.told.append,
            now=lambda: self.processes.now,
            rng=random.Random(1),
        )

    def be_silent(self, seconds: float) -> None:
        """One unanswered round of probes each second."""
        for _ in range(round(seconds)):
            self.run(1.0)
            self.supervisor.observe({"bookie-1": None})

    def go_on(self, seconds: float) -> Iterator[None]:
        end = self.processes.now + seconds
        while self.processes.now < end:
            self.processes.now += 0.2
            self.supervisor.poll()
            yield

    def run(self, seconds: float) -> None:
        for _ in self.go_on(seconds):
            pass

    def run_until_launched(self) -> None:
        count = len(self.processes.launched)
        for _ in self.go_on(2 * LONGEST_S):
            if len(self.processes.launched) > count:
                return
        raise AssertionError("it was not started again")


def test_a_process_that_ends_is_started_again_at_once() -> None:
    play = Play()
    play.processes.ends(-9)
    play.run_until_launched()
    assert play.processes.launched[0] <= FIRST_S + 0.5
    play.processes.serves()
    play.run(1.0)
    assert "bookie-1 was killed by signal 9; the others continue, and it is started again in 0." in play.told[0]
    assert play.told[1] == "bookie-1 serves again at 127.0.0.1:20000 as process 7"
    assert play.supervisor.restarts == 1


def test_an_orderly_end_is_an_end_too() -> None:
    play = Play()
    play.processes.ends(0)
    play.run_until_launched()
    assert "bookie-1 ended with code 0;" in play.told[0]


def test_a_process_that_ends_at_each_start_is_tried_at_intervals_that_grow_to_a_bound() -> None:
    play = Play()
    for _ in range(14):
        play.processes.ends(1)
        play.run_until_launched()
    launched = play.processes.launched
    gaps = [after - before for before, after in itertools.pairwise(launched)]
    assert gaps[3] > 4 * gaps[0]
    assert all(LONGEST_S / 2 <= gap <= LONGEST_S + 1 for gap in gaps[-4:])
    assert play.told[1].startswith("bookie-1 did not start: no disk; next try in ")
    assert len(play.told) == 14, "one line for each end"


def test_a_process_that_served_long_begins_with_the_short_interval_again() -> None:
    play = Play()
    for _ in range(8):
        play.processes.ends(1)
        play.run_until_launched()
    play.processes.serves()
    play.run(STEADY_S + 1)
    play.processes.ends(-9)
    at = play.processes.now
    play.run_until_launched()
    assert play.processes.launched[-1] - at <= FIRST_S + 0.5


def test_a_process_that_serves_briefly_each_time_is_not_started_ever_faster() -> None:
    play = Play()
    for _ in range(10):
        play.processes.ends(-9)
        play.run_until_launched()
        play.processes.serves()
        play.run(1.0)
    launched = play.processes.launched
    assert launched[-1] - launched[-2] >= LONGEST_S / 2


def test_a_process_killed_before_it_served_is_reported_as_killed() -> None:
    play = Play()
    play.processes.ends(-9)
    play.run_until_launched()
    play.processes.ends(-9)
    play.run(0.2)
    assert play.told[-1].startswith("bookie-1 was killed by signal 9 before it served (its log: /c/bookie-1/log); next try in ")


@pytest.mark.parametrize("error", [EnvironmentFault("127.0.0.1:20000 is held by process 9"), OSError(11, "no process can be made")])
def test_a_start_that_is_refused_is_reported_and_tried_again(error: Exception) -> None:
    play = Play()
    play.processes.refusal = error
    play.processes.ends(-9)
    play.run(20.0)
    assert play.told[1].startswith(f"{error}; next try in ")
    assert 3 <= len(play.told) <= 9
    play.processes.refusal = None
    play.run_until_launched()


def test_without_restarts_an_end_is_reported_with_the_command_that_starts_it() -> None:
    play = Play(restart=False)
    play.processes.ends(-9)
    play.run(200.0)
    assert play.processes.launched == []
    (line,) = play.told
    assert line.startswith("bookie-1 was killed by signal 9; the others continue. Its log: /c/bookie-1/log. ")
    assert line.endswith("Start it again: triplicate bookie --config /c/bookie-1/bookie.toml")


@pytest.mark.parametrize("restart", [False, True])
def test_a_process_that_did_not_start_with_the_others_is_tried_again(*, restart: bool) -> None:
    play = Play(restart=restart, served=False)
    play.processes.ends(1)
    play.run(2.0)
    if restart:
        assert play.told[0].startswith("bookie-1 did not start: no disk; next try in 0.")
        assert play.processes.launched
    else:
        assert play.told == ["bookie-1 did not start: no disk. Start it again: triplicate bookie --config /c/bookie-1/bookie.toml"]
        assert play.processes.launched == []


def test_a_process_that_is_silent_for_long_is_reported_then_writes_its_stacks_and_is_killed() -> None:
    play = Play()
    play.be_silent(SILENT_S + 2)
    (line,) = play.told
    assert line.startswith("bookie-1 runs and has not answered for 10 s: it is stopped or overloaded, and is killed and started again if ")
    assert line.endswith(" 60 s")
    play.be_silent(30)
    assert play.processes.sent == [], "slow is not dead"
    while not play.processes.sent:
        play.be_silent(1)
        assert play.processes.now < 70
    assert play.processes.sent[0] == signal.SIGUSR2
    assert "bookie-1 has not answered for 60 s and is killed" in play.told[1]
    play.run(DUMP_S)
    assert set(play.processes.sent[1:]) == {signal.SIGKILL}
    play.processes.ends(-9)
    play.run_until_launched()
    play.processes.sent.clear()
    play.be_silent(SILENT_S + 2)
    assert play.processes.sent == [], "the silence of another process under its name"


def test_one_answer_ends_a_silence() -> None:
    play = Play()
    for _ in range(3):
        play.be_silent(50)
        play.supervisor.observe({"bookie-1": {}})
    assert play.processes.sent == []
    assert play.told[1::2] == 3 * ["bookie-1 answers again"]


def test_a_supervisor_that_stood_still_itself_kills_nothing() -> None:
    play = Play()
    play.be_silent(1)
    play.processes.now += 1000.0
    play.be_silent(ROUNDS_MIN - 2)
    assert play.processes.sent == []
    play.be_silent(1)
    assert play.processes.sent == [signal.SIGUSR2]


@pytest.mark.parametrize(("restart", "limit_s"), [(False, 60.0), (True, None)])
def test_a_silent_process_is_left_alone_where_that_is_wanted(*, restart: bool, limit_s: float | None) -> None:
    play = Play(restart=restart, silence_limit_s=limit_s)
    play.be_silent(200)
    assert play.processes.sent == []
    (line,) = play.told
    assert line.endswith("it is stopped or overloaded, and is not restarted")
