"""A writer counts acknowledgements of a ledger that it gave up, although recovery may not find those entries."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/property/test_writer_machine.py::test_a_ledger_that_fails_during_a_roll_is_recovered_and_other_entries_are_resent"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.writer_machine import WriterMachine

    acknowledge = WriterMachine.acknowledge

    def believe(self: WriterMachine[object], ledger_id: int, entry_id: int) -> None:
        if self._in_flight and self._in_flight[0].entry_id == entry_id:
            self._resolve(self._in_flight.popleft())
        else:
            acknowledge(self, ledger_id, entry_id)

    patch(WriterMachine, "acknowledge", believe)
