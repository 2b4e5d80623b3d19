"""A publish lists a staging ledger in plain text in an encrypted log."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/test_logs_encrypted.py::test_a_ledger_in_plain_text_is_not_published"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.publishing import publication

    patch(publication, "check_staging_mark", lambda *_: None)
