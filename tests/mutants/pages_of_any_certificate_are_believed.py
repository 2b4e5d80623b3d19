"""A command reads pages with any certificate, and sends its token to them."""

from __future__ import annotations

import ssl
from typing import Any

TESTS = [
    "tests/unit/cli/process/test_page_access.py::test_a_page_whose_certificate_has_expired_is_not_believed",
    "tests/unit/cli/process/test_page_access.py::test_a_protected_page_is_read_by_our_commands_and_by_nobody_else",
]


def apply(patch: Any) -> None:
    def careless(cafile: str | None = None) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context

    patch(ssl, "create_default_context", careless)
