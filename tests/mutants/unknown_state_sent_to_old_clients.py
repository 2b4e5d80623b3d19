"""Status 507 is sent although the setting says that clients before 4.15 exist, which cannot parse the answer."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/server/test_request_processor_v3.py::test_a_ledger_whose_entries_may_be_missing_is_unknown_never_a_no[True]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.server.dialects import V3Dialect

    init = V3Dialect.__init__
    patch(V3Dialect, "__init__", lambda self, knows_unknown_state=True: init(self, True))
