"""EXEC runs what was queued by rights that the client has lost since."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/kv/resp/test_resp_logins.py::test_exec_runs_nothing_for_which_the_right_was_taken_since_it_was_queued"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.kv.resp import command_handlers

    patch(command_handlers, "may_run", lambda rights, command: True)
