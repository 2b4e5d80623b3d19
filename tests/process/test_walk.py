"""The walk of the docs runs as printed, command by command, in one shell."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.process.running import environment

PAGE = Path(__file__).resolve().parents[2] / "docs" / "walk.md"
LIMIT_S = 300.0
MARK = "-- end of command {} --"


class Command(NamedTuple):
    """A command as it is typed, and the lines that the page shows behind it."""

    text: str
    shown: str


def commands_of(page: str) -> list[Command]:
    found: list[Command] = []
    for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = part.splitlines()
            typed = [lines[0], *(line.removeprefix(">").removeprefix(" ") for line in lines[1:] if line.startswith(">"))]
            found.append(Command("\n".join(typed), "\n".join(line for line in lines[1:] if not line.startswith(">"))))
    return found


def matches(shown: str, printed: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in shown.split("…"))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def test_what_is_printed_is_compared() -> None:
    page = "```console\n$ a <<'END'\n> one\n> \n> two\n> END\n3|…\n$ b\n```\n"
    assert commands_of(page) == [Command("a <<'END'\none\n\ntwo\nEND", "3|…"), Command("b", "")]
    assert matches("3|…", "3|4.5\n")
    assert not matches("3|…", "4|4.5\n")
    assert not matches("", "something")


@pytest.mark.deep
def test_the_walk_runs_as_printed(tmp_path: Path) -> None:
    commands = commands_of(PAGE.read_text(encoding="utf-8"))
    assert len(commands) > 25
    script = "".join(f"{command.text}\nprintf '\\n%s\\n' '{MARK.format(number)}'\n" for number, command in enumerate(commands))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    shell = subprocess.Popen(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**environment(), "PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        printed, errors = shell.communicate(timeout=LIMIT_S)
    finally:
        # Also what the walk has left in the background.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
    rest = printed
    for number, command in enumerate(commands):
        answer, mark, rest = rest.partition(MARK.format(number))
        assert mark, f"the walk did not come to: {command.text}\n{errors}"
        assert matches(command.shown, answer), f"$ {command.text}\n{answer.strip()}\n(expected: {command.shown})\n{errors}"
