"""A network of one peer, which answers as a test says."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import Any, cast

from triplicate.replica.failure_detector import PROBE

LATE_ANSWER_S = 0.45
FAR = "far.example:5432"


class FakeNetwork:
    """Answers each connection as `answers` says for the next one, the last answer for ever."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.dialled: list[tuple[str, int]] = []
        self.lines: list[_Transport] = []

    async def connect(self, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> tuple[Any, asyncio.Protocol]:
        self.dialled.append((host, port))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer == "refused":
            raise ConnectionRefusedError(f"{host}:{port}")
        if answer == "malformed":
            raise UnicodeError("label empty or too long")  # As names are that cannot be looked up at all.
        if answer == "unreachable":
            raise OSError(f"no way to {host}:{port}")
        if answer == "swallowed":
            raise OSError(errno.EHOSTUNREACH, f"no way to {host}:{port}")
        protocol = factory()
        self.lines.append(_Transport(answer, protocol))
        protocol.connection_made(cast("asyncio.BaseTransport", self.lines[-1]))
        return self.lines[-1], protocol


class _Transport:
    """The peer behind a connection: "taken" answers once and hangs up, "held" answers for ever, "mute" never, "once" one time, and
    "late" a second time after a while.
    """

    def __init__(self, kind: str, protocol: asyncio.Protocol) -> None:
        self.kind = kind
        self.protocol = protocol
        self.asked = 0
        self.is_aborted = False

    def write(self, data: bytes) -> None:
        assert data == PROBE
        self.asked += 1
        loop = asyncio.get_running_loop()
        if self.kind in ("taken", "held") or (self.kind == "once" and self.asked == 1):
            loop.call_soon(self.protocol.data_received, b"N")
        if self.kind == "late" and self.asked <= 2:
            loop.call_later((self.asked - 1) * LATE_ANSWER_S, self.protocol.data_received, b"N")
        if self.kind == "taken":
            loop.call_soon(self.protocol.connection_lost, None)

    def abort(self) -> None:
        self.is_aborted = True
