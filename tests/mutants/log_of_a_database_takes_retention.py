"""The log of a database is cut by age or size, although its snapshots still need the records."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log import logs

TESTS = ["tests/unit/log/core/test_purposes.py::test_the_log_of_a_database_takes_no_retention_since_its_snapshots_decide_what_goes"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(logs, "check_retention", lambda log, settings, purpose: None)
