"""Orders of groups, acknowledgements and refusals: which groups a window accepts, and when it may be committed."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from triplicate.sql.core.group_window import FURTHER_STATEMENTS, MAX_BYTES, MAX_GROUPS, GroupWindow

MAX_STATEMENTS = 100


class _Sent:
    def __init__(self, statements: int, size_bytes: int) -> None:
        self.statements = statements
        self.size_bytes = size_bytes


class Window(RuleBasedStateMachine):
    """One window, whose groups are sent in order and acknowledged in any."""

    def __init__(self) -> None:
        super().__init__()
        self.window: GroupWindow[_Sent] = GroupWindow(MAX_STATEMENTS)
        self.sent: list[_Sent] = []
        self.at_the_log: list[_Sent] = []
        self.drains = False

    @rule(statements=st.integers(1, 60), size_bytes=st.integers(0, MAX_BYTES), more=st.integers(0, 60))
    def statements_wait(self, statements: int, size_bytes: int, more: int) -> None:
        waiting = statements + more
        if not self.window.accepts(waiting):
            assert self.sent or self.drains, "the first group is sent at once"
            return
        assert not self.drains
        assert len(self.sent) < MAX_GROUPS
        assert sum(group.statements for group in self.sent) < MAX_STATEMENTS
        assert sum(group.size_bytes for group in self.sent) < MAX_BYTES
        assert not self.sent or waiting >= max(FURTHER_STATEMENTS, self.sent[-1].statements)
        group = _Sent(statements, size_bytes)
        self.sent.append(group)
        self.at_the_log.append(group)
        self.window.send(group, statements, size_bytes)

    @precondition(lambda self: self.at_the_log)
    @rule(data=st.data())
    def a_group_is_acknowledged(self, data: st.DataObject) -> None:
        group = self.at_the_log.pop(data.draw(st.integers(0, len(self.at_the_log) - 1)))
        self.window.acknowledge(group)
        self.drains = True

    @precondition(lambda self: self.sent and self.sent[-1] in self.at_the_log)
    @rule()
    def the_last_group_is_refused(self) -> None:
        self.window.refuse(self.sent.pop())
        self.at_the_log.pop()
        self.drains = True

    @rule()
    def something_else_waits(self) -> None:
        self.window.drain()
        self.drains = True

    @invariant()
    def it_may_be_committed_only_when_the_log_has_all_of_it(self) -> None:
        assert self.window.may_be_committed == (not self.at_the_log)
        assert list(self.window.groups) == self.sent

    @invariant()
    def nothing_waits_for_no_statement(self) -> None:
        assert not self.window.accepts(0)


TestWindow = Window.TestCase
