"""A process serves its pages to other machines without a token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

TESTS = [
    "tests/unit/security/core/test_page_protection.py::test_any_other_address_needs_tls_and_a_token",
    "tests/unit/cli/process/test_page_access.py::test_a_process_told_to_serve_elsewhere_without_protection_does_not_start",
]


def apply(patch: Any) -> None:
    from triplicate.cli.process import page_access as shell
    from triplicate.config import ProcessSettings, SecuritySettings
    from triplicate.security.core import page_protection

    gaps = page_protection.page_gaps

    def careless(process: ProcessSettings, security: SecuritySettings) -> Iterator[str]:
        return (gap for gap in gaps(process, security) if not gap.startswith("process.metrics_token_file"))

    patch(page_protection, "page_gaps", careless)
    patch(shell, "page_gaps", careless)
