"""Windows of groups in real nodes: each node notes when several groups of its statements are at the log, and the run counts them.

No metric shows windows. The nodes of a run therefore have `note_windows` applied when they start, by ``preloaded/sitecustomize.py``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

PRELOADED = Path(__file__).resolve().parent / "preloaded"
FOLDER_VARIABLE = "HISTORIES_WINDOWS"
SUFFIX = ".windows"
OPENED = " 0\n"
"""End of a line that notes an opened window; other lines end with the number of its groups."""
POLL_S = 0.0005


@dataclass(frozen=True, slots=True)
class Window:
    """A window with more than one group. Times are of the machine's monotonic clock, which all processes share."""

    opened_s: float
    """When its second group was sent."""
    ended_s: float
    """When it was committed; infinite where it failed, or its process ended first."""
    groups: int


def environment(folder: Path) -> dict[str, str]:
    """Variables of a cluster whose nodes note their windows in a folder."""
    paths = [str(PRELOADED), str(PRELOADED.parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {FOLDER_VARIABLE: str(folder), "PYTHONPATH": os.pathsep.join(paths)}


def note_windows(folder: str) -> None:
    """Have this process append a line to a file in the folder when a window gets its second group, and when it is committed."""
    from triplicate.sql.engine.leadership import Leadership

    file = os.open(Path(folder) / f"{os.getpid()}{SUFFIX}", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
    append_further, commit_window = Leadership._append_further, Leadership._commit_window

    def note(groups: int) -> None:
        os.write(file, f"{time.monotonic()} {groups}\n".encode())

    async def append_noting(self: Leadership, window: Any, group: Any) -> None:
        if len(window.groups) == 2:
            note(0)
        await append_further(self, window, group)

    async def commit_noting(self: Leadership, groups: Sequence[Any]) -> None:
        await commit_window(self, groups)
        if len(groups) > 1:
            note(len(groups))

    Leadership._append_further = append_noting  # type: ignore[method-assign]
    Leadership._commit_window = commit_noting  # type: ignore[method-assign]


def parse_windows(text: str) -> list[Window]:
    """The windows of one process. A window of databases at the same time counts for the first that ends."""
    found: list[Window] = []
    opened_s: float | None = None
    for line in text.splitlines():
        at_s, groups = line.split()
        if int(groups) == 0:
            if opened_s is not None:
                found.append(Window(opened_s, inf, 2))
            opened_s = float(at_s)
        elif opened_s is not None:
            found.append(Window(opened_s, float(at_s), int(groups)))
            opened_s = None
    if opened_s is not None:
        found.append(Window(opened_s, inf, 2))
    return found


def read_windows(folder: Path) -> list[Window]:
    """The windows of all processes."""
    return [window for path in sorted(folder.glob(f"*{SUFFIX}")) for window in parse_windows(path.read_text())]


def await_open(folder: Path, limit_s: float) -> bool:
    """Wait until a window gets its second group. Returns whether one did within the limit."""
    sizes = {path: path.stat().st_size for path in folder.glob(f"*{SUFFIX}")}
    until_s = time.monotonic() + limit_s
    while time.monotonic() < until_s:
        for path in folder.glob(f"*{SUFFIX}"):
            if path.stat().st_size > sizes.get(path, 0) and path.read_text().endswith(OPENED):
                return True
        time.sleep(POLL_S)
    return False


def faults_in_windows(windows: Iterable[Window], moments: Sequence[float], lasts_s: float) -> int:
    """The faults that began while a window was open.

    Args:
        moments: times of the faults. lasts_s: a window without an end counts as open for this time.
    """
    spans = [(window.opened_s, min(window.ended_s, window.opened_s + lasts_s)) for window in windows]
    return sum(any(opened_s <= at_s <= ended_s for opened_s, ended_s in spans) for at_s in moments)
