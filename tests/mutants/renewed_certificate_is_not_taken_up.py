"""A process keeps the certificate with which it started."""

from __future__ import annotations

from typing import Any

TESTS = ["tests/unit/security/test_certificate_store.py::test_a_running_process_takes_a_renewed_certificate_up"]


def apply(patch: Any) -> None:
    from triplicate.security.tls import TlsIdentity

    def never(self: TlsIdentity) -> None:
        pass

    patch(TlsIdentity, "_renew", never)
