"""The files of an authority and its certificates get the mode that the process's mask allows."""

from __future__ import annotations

from typing import Any

TESTS = ["tests/unit/security/test_certificate_store.py::test_only_the_owner_can_read_what_the_store_writes"]


def apply(patch: Any) -> None:
    from triplicate.security import secret_files

    patch(secret_files, "PRIVATE_FILE", 0o666)
    patch(secret_files, "PRIVATE_DIRECTORY", 0o777)
