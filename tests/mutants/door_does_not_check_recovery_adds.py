"""The adds of a recovery need no right."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/server/test_frame_processor_rights.py::test_a_role_allows_its_requests_and_no_others"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.server.add_processor import AddProcessor
    from triplicate.bookie.server.dialects import Adds, Dialect
    from triplicate.wire import Status

    refuse = AddProcessor.refuse

    def trusting(self: AddProcessor, adds: Adds, dialect: Dialect, status: Status) -> None:
        handle = self._storage.ledgers.get(adds.run.ledger_id)
        if status is Status.UNAUTHORIZED and adds.run.recovery and handle is not None:
            self.admit(adds, dialect, handle)
        else:
            refuse(self, adds, dialect, status)

    patch(AddProcessor, "refuse", trusting)
