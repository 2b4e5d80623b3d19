"""A decommission that waits prints two lines with each of its rounds, twice a second."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/cli/server_commands/test_bookie_decommission.py::test_a_decommission_that_waits_prints_a_line_a_minute_without_a_terminal",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.cli.server_commands.bookie_decommission import ProgressLines

    changed = ProgressLines._changed

    def at_each_change_of_part(lines: ProgressLines) -> None:
        lines._begun &= {lines.progress.phase}
        changed(lines)

    patch(ProgressLines, "_changed", at_each_change_of_part)
