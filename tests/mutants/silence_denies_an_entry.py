"""A slow replica counts as one that denies the entry, so recovery cuts off acknowledged entries."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.ledger import recovery as machine

TESTS = [
    "tests/unit/ledger/test_recovery.py::test_silence_denies_nothing_however_long_it_lasts",
    "tests/property/test_recovery.py::test_recovery_keeps_every_acknowledged_entry",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    step = machine.Recovery.step

    def deny(self: machine.Recovery, event: machine.Event, now: float) -> None:
        if isinstance(event, machine.TimePassed):
            for entry in self._hedgeable():
                for bookie_id in entry.plan.awaited:
                    entry.plan.absent(bookie_id)
        step(self, event, now)

    patch(machine.Recovery, "step", deny)
