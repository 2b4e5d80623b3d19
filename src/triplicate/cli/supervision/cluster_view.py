"""Changes in a local cluster, derived from the ``/ready`` answers of its processes. Pure, so that every change can be tested."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Answers = Mapping[str, Mapping[str, Any] | None]
"""The answers to ``/ready`` by process; None for a process that did not answer in time, empty for an answer that cannot be read. Processes
that do not run are left out."""

LEADERLESS_S = 5.0
"""A missing leader is reported after this time."""


class ClusterView:
    """The last observed state of a cluster."""

    def __init__(self) -> None:
        self._writable: dict[str, bool] = {}
        self._leaders: dict[str, str | None] = {}
        self._leaderless_since: dict[str, float] = {}
        self._leaderless_reported: set[str] = set()
        self._diverged: set[tuple[str, str]] = set()

    @property
    def read_only(self) -> list[str]:
        """The read-only bookies."""
        return sorted(name for name, writable in self._writable.items() if not writable)

    def observe(self, now: float, answers: Answers) -> list[str]:
        """Record the answers; returns a line for each change."""
        lines = [*self._bookies(answers), *self._copies(answers), *self._leadership(now, answers)]
        self._writable = {name: writable for name, writable in self._writable.items() if name in answers}
        return lines

    def _bookies(self, answers: Answers) -> Iterator[str]:
        for name, answer in sorted(answers.items()):
            if answer is None or "writable" not in answer:
                continue
            before, self._writable[name] = self._writable.get(name, True), bool(answer["writable"])
            if before and not self._writable[name]:
                yield f"{name} is read-only: it accepts no new entries, for want of disk space or by request"
            elif not before and self._writable[name]:
                yield f"{name} is writable again"

    def _copies(self, answers: Answers) -> Iterator[str]:
        diverged = {(name, database) for name, database, role in _roles(answers) if role == "diverged"}
        for name, database in sorted(diverged - self._diverged):
            yield f"the copy of database {database} on {name} has diverged and is not served; the log of {name} has the reason"
        self._diverged = diverged

    def _leadership(self, now: float, answers: Answers) -> Iterator[str]:
        leaders: dict[str, list[str]] = {}
        for name, database, role in _roles(answers):
            leaders.setdefault(database, []).extend([name] if role == "leader" else [])
        for database, names in sorted(leaders.items()):
            before = self._leaders.get(database)
            if names:
                leader = before if before in names else names[0]
                self._leaderless_since.pop(database, None)
                if leader != before or database in self._leaderless_reported:
                    yield f"{leader} leads database {database}"
                self._leaderless_reported.discard(database)
                self._leaders[database] = leader
            elif now - self._leaderless_since.setdefault(database, now) >= LEADERLESS_S and database not in self._leaderless_reported:
                self._leaderless_reported.add(database)
                yield f"database {database} has had no leader for {LEADERLESS_S:.0f} s: nothing can be written to it"


class _CopyRole(NamedTuple):
    node: str
    database: str
    role: str


def _roles(answers: Answers) -> Iterator[_CopyRole]:
    """The roles of all copies, by node."""
    for name, answer in sorted(answers.items()):
        for database, facts in sorted((answer or {}).get("databases", {}).items()):
            yield _CopyRole(name, database, str(facts.get("role")))
