"""The auditor regards only writable bookies as registered."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.autorecovery import LedgerAudits
from triplicate.metadata import BookieServiceInfo

TESTS = ["tests/unit/autorecovery/test_auditor.py::test_a_read_only_bookie_is_not_lost"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def registered(audits: LedgerAudits) -> dict[str, BookieServiceInfo]:
        return await audits._metadata.bookies.writable()

    patch(LedgerAudits, "registered", registered)
