"""A roll closes the segment while entries are in flight, so the list counts fewer records than the ledger holds."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/property/test_writer_machine.py::test_a_roll_waits_for_entries_in_flight_and_sends_nothing"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.writer_machine import Phase, RollBegun, RollChecked, SwitchSegment, WriterMachine

    def hurry(self: WriterMachine[object], event: RollBegun | RollChecked) -> None:
        if isinstance(event, RollChecked):
            self._send_next(checked=True)
        else:
            self.phase = Phase.SWITCHING
            self.commands.append(SwitchSegment(None))

    patch(WriterMachine, "_apply_policy", hurry)
