"""Both servers for all tests of this folder, and one summary at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.differential.runner import Tally
from tests.differential.servers import Database, find_postgresql, ours, postgresql

SUMMARY = Path(__file__).resolve().parents[2] / "build" / "differential" / "summary.txt"
TALLY = pytest.StashKey[Tally]()


@pytest.fixture(scope="session")
def reference() -> Iterator[Database]:
    """PostgreSQL alone."""
    programs = find_postgresql()
    assert programs is not None, (
        "PostgreSQL's server is missing: run `make setup` as root, or install it (Debian: apt-get install postgresql)"
    )
    with postgresql(programs) as database:
        yield database


@pytest.fixture(scope="session")
def databases(reference: Database) -> Iterator[tuple[Database, Database]]:
    """PostgreSQL and ours."""
    with ours() as here:
        yield reference, here


@pytest.fixture(scope="session")
def tally(pytestconfig: pytest.Config) -> Tally:
    """All verdicts of the session so far."""
    return pytestconfig.stash.setdefault(TALLY, Tally())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    tally = config.stash.get(TALLY, None)
    if tally is not None and tally.is_used():
        line = f"compared with PostgreSQL: {tally.summary()}"
        SUMMARY.parent.mkdir(parents=True, exist_ok=True)
        SUMMARY.write_text(line + "\n", encoding="utf-8")
        terminalreporter.write_line(line)
