"""The groups of statements that are at the log together: when a further one may be sent, and when all may be committed. Pure.

A leader has one open SQLite transaction. A group runs in it and is sent to the log as one entry. While it is there, a further group may run
on top of it. The local commit makes all groups of the window visible at once, so it waits for the acknowledgement of each. No answer of the
window is given before.

The first acknowledgement lets the window drain: each further group would delay the groups before it. A further group needs more statements
than the group before it, because each entry of the log has a cost of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

Group = TypeVar("Group")

MAX_GROUPS = 8
"""Upper bound on the groups of a window."""
MAX_BYTES = 2 * 1024 * 1024
"""A window whose records have this size accepts no further group, bytes."""
FURTHER_STATEMENTS = 4
"""The smallest number of statements for which a further group is sent."""
_GROWTH = 2
"""A further group has this times the statements of the one before."""


class GroupWindow(Generic[Group]):
    """One window, from its first group to its commit.

    Args:
        max_statements: a window with this number of statements accepts no further group.
    """

    def __init__(self, max_statements: int) -> None:
        self._max_statements = max_statements
        self._groups: list[Group] = []
        self._unacknowledged: list[Group] = []
        self._is_draining = False
        self._statements = self._size_bytes = self._last_statements = 0

    @property
    def groups(self) -> Sequence[Group]:
        """Those that were sent, in order."""
        return self._groups

    @property
    def may_be_committed(self) -> bool:
        """Whether the log has acknowledged every group."""
        return not self._unacknowledged

    def accepts(self, waiting: int) -> bool:
        """Whether a further group should run.

        Args:
            waiting: the statements that wait.
        """
        if self._is_draining or waiting == 0:
            return False
        if not self._groups:
            return True
        if len(self._groups) >= MAX_GROUPS or self._size_bytes >= MAX_BYTES or self._statements >= self._max_statements:
            return False
        return waiting >= max(FURTHER_STATEMENTS, _GROWTH * self._last_statements)

    def send(self, group: Group, statements: int, size_bytes: int) -> None:
        """A group is about to be sent, after all others.

        Args:
            statements: those that it has run. size_bytes: of its records.
        """
        self._groups.append(group)
        self._unacknowledged.append(group)
        self._statements += statements
        self._size_bytes += size_bytes
        self._last_statements = statements

    def refuse(self, group: Group) -> None:
        """The log refused the group that was sent last, before it took a place in the log. No further group follows."""
        assert self._groups[-1] is group, "only the last group can be refused: others would follow it in the log"
        self._groups.remove(group)
        self._unacknowledged.remove(group)
        self._is_draining = True

    def acknowledge(self, group: Group) -> None:
        """The log has acknowledged a group. Acknowledgements may come in any order."""
        self._unacknowledged.remove(group)
        self._is_draining = True

    def drain(self) -> None:
        """Accept no further group, for a reason outside of the window."""
        self._is_draining = True
