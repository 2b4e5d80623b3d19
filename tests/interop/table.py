"""The table of what works with what, in Markdown, from what became of each test."""

from __future__ import annotations

import datetime
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.interop.driver import BUILD, java_command
from tests.zookeeper.server import jars
from triplicate import DigestType

Place = tuple[str, str, str, str]
"""Client, bookies, wire, digest."""

_results: dict[str, tuple[Place | None, bool]] = {}
_figures: list[str] = []


def note(nodeid: str, place: Place | None, passed: bool) -> None:
    """A test ended; one that also failed while it was taken down has failed."""
    known = _results.get(nodeid)
    _results[nodeid] = (place, passed and (known is None or known[1]))


def add_figures(line: str) -> None:
    """Print a line below the table."""
    _figures.append(line)


def render(releases: Sequence[str]) -> str:
    """Empty when no test ran."""
    if not _results:
        return ""
    parts = [_versions(releases), _matrix(), _others(), [f"- {line}" for line in _figures]]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def keep(text: str) -> Path:
    path = BUILD / "table.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")
    return path


def _versions(releases: Sequence[str]) -> list[str]:
    java = subprocess.run([*java_command(releases[0])[:1], "-version"], capture_output=True, text=True, check=True).stderr.splitlines()[0]
    zookeeper = jars()[0].stem
    apache = " and ".join(releases)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return [f"Apache BookKeeper {apache} (bookies: {releases[0]}), {zookeeper}, {java}; {today}."]


def _matrix() -> list[str]:
    """One row per client, bookies and wire; per digest how many of the operations passed."""
    digests = [digest_type.name for digest_type in DigestType]
    cells: dict[tuple[str, str, str], dict[str, list[bool]]] = {}
    for place, passed in _results.values():
        if place is not None:
            client, bookies, wire, digest = place
            cells.setdefault((client, bookies, wire), {}).setdefault(digest, []).append(passed)
    if not cells:
        return []
    lines = [_row("client", "bookies", "wire", *digests), _row(*["---"] * (3 + len(digests)))]
    for row, found in cells.items():
        lines.append(_row(*row, *(_count(found.get(digest, [])) for digest in digests)))
    return lines


def _others() -> list[str]:
    """One row per test that is not of the matrix, over its parameters."""
    found: dict[str, list[bool]] = {}
    for nodeid, (place, passed) in _results.items():
        if place is None:
            found.setdefault(nodeid.removeprefix("tests/interop/").partition("[")[0], []).append(passed)
    if not found:
        return []
    lines = [_row("scenario", "passed"), _row("---", "---")]
    return lines + [_row(f"`{name}`", _count(passed)) for name, passed in found.items()]


def _count(passed: Sequence[bool]) -> str:
    return f"{sum(passed)} of {len(passed)}" if passed else "-"


def _row(*columns: str) -> str:
    return "| " + " | ".join(columns) + " |"
