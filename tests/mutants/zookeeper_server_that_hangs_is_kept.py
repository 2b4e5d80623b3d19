"""A connection to a server that has begun to hang is kept, and all requests wait for two thirds of a session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kazoo.handlers.threading import SequentialThreadingHandler

from triplicate.metadata.drivers.zookeeper_session import _OneSession

TESTS = ["tests/unit/metadata/drivers/test_zookeeper_session_silence.py::test_a_server_that_answers_no_request_is_left"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def select(self: _OneSession, sockets: list[Any], timeout: float) -> Any:
        return SequentialThreadingHandler.select(self, *sockets, timeout)

    patch(_OneSession, "_select_connected", select)
