"""A server that has begun to hang is left before the session is in danger, and a slow one is given more time."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from kazoo.exceptions import ConnectionDropped
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.states import KazooState
from kazoo.retry import ForceRetryError

from triplicate.metadata.drivers.zookeeper_session import (
    CALM_ANSWERS,
    FIRST_WAIT_SHARE,
    RECONNECT_FIRST_S,
    RECONNECT_JITTER,
    RECONNECT_LONGEST_S,
    SILENCE_SHARE,
    _OneSession,
    _ServerSocket,
    reconnect_pauses,
)

LIMIT_S = 1.0


class Stage:
    """A handler whose selects return what a test says, each after a time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.requests = 1
        self.server = _ServerSocket(socket.socket(), lambda error: None)
        self.is_heard = False
        self.waits: list[float] = []

        def select(handler: object, read: list[Any], written: list[Any], others: list[Any], timeout: float) -> Any:
            self.waits.append(timeout)
            self.now += timeout
            return ([self.server] if self.is_heard else []), [], []

        monkeypatch.setattr(SequentialThreadingHandler, "select", select)
        self.handler = _OneSession(LIMIT_S / SILENCE_SHARE, lambda *_: self.server, lambda: self.now, lambda: self.requests > 0)
        self.handler.changed(KazooState.CONNECTED)

    def select(self, timeout: float = 3.0) -> Any:
        return self.handler.select([self.server, object()], [], [], timeout)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(monkeypatch)
    yield made
    made.server.close()


def test_a_server_that_answers_no_request_is_left(stage: Stage) -> None:
    with pytest.raises(ConnectionDropped, match="answers nothing"):
        stage.select()
    assert stage.waits == [LIMIT_S]


def test_further_requests_do_not_hide_the_silence(stage: Stage) -> None:
    stage.select(0.4)
    stage.select(0.4)
    with pytest.raises(ConnectionDropped):
        stage.select(0.4)


def test_a_server_of_which_nothing_is_asked_may_be_silent(stage: Stage) -> None:
    stage.requests = 0
    for _ in range(5):
        stage.select()
    assert stage.waits == [3.0] * 5


def test_an_answer_begins_the_silence_again(stage: Stage) -> None:
    for _ in range(5):
        stage.is_heard = True
        stage.select(0.9)
        stage.is_heard = False
        stage.select(0.9)


def test_a_server_that_was_left_too_early_has_twice_the_time_until_it_is_quick_again(stage: Stage) -> None:
    for limit_s in (LIMIT_S, 2 * LIMIT_S, 4 * LIMIT_S):
        with pytest.raises(ConnectionDropped):
            stage.select(10.0)
        assert stage.waits[-1] == limit_s
    stage.is_heard = True
    for _ in range(CALM_ANSWERS):
        stage.select(0.01)
    stage.is_heard = False
    with pytest.raises(ConnectionDropped):
        stage.select()
    assert stage.waits[-1] == LIMIT_S


# A new connection.

SESSION_S = LIMIT_S / SILENCE_SHARE
FIRST_WAIT_S = SESSION_S * FIRST_WAIT_SHARE
SERVERS = [("a", "10.0.0.1", 2181), ("b", "10.0.0.2", 2181)]


def connect(stage: Stage, name: str) -> None:
    (address,) = [server[1:] for server in SERVERS if server[0] == name]
    stage.handler.create_connection(address, timeout=SESSION_S)


def tried(stage: Stage) -> str:
    return "".join(name for name, _, _ in stage.handler.to_try(SERVERS))


def test_a_server_that_accepts_a_connection_and_is_silent_is_passed_over(stage: Stage) -> None:
    stage.handler.changed(KazooState.SUSPENDED)
    connect(stage, "a")
    stage.select(SESSION_S)
    assert stage.waits == [FIRST_WAIT_S]
    assert tried(stage) == "b"
    stage.now += SESSION_S
    assert tried(stage) == "ab"


def test_a_server_that_ends_a_connection_is_tried_again_in_the_next_turn(stage: Stage) -> None:
    stage.handler.changed(KazooState.SUSPENDED)
    connect(stage, "a")
    stage.is_heard = True
    stage.select(SESSION_S)
    assert tried(stage) == "ab"


def test_a_server_that_was_left_for_its_silence_is_passed_over(stage: Stage) -> None:
    connect(stage, "a")
    with pytest.raises(ConnectionDropped):
        stage.select(SESSION_S)
    assert tried(stage) == "b"
    connect(stage, "a")
    stage.handler.changed(KazooState.CONNECTED)
    assert tried(stage) == "ab"


def test_the_pause_before_the_next_turn_is_a_small_part_of_the_time_without_a_server() -> None:
    pauses: list[float] = []
    retry = reconnect_pauses()
    retry.sleep_func = pauses.append

    def connects() -> None:
        if sum(pauses) < 20.0:
            raise ForceRetryError("no server serves")

    retry(connects)
    for number, pause_s in enumerate(pauses):
        assert pause_s <= (1 + RECONNECT_JITTER) * RECONNECT_LONGEST_S
        assert pause_s <= 2 * RECONNECT_FIRST_S + sum(pauses[:number]) / 3
    assert max(pauses[-5:]) > RECONNECT_LONGEST_S / 2, "servers that are away for long are not asked all the time"
