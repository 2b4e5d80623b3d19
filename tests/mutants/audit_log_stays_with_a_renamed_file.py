"""After a rotation the audit log goes on in the renamed file."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.cli.process.audit_log import PrivateFileHandler

TESTS = ["tests/unit/cli/process/test_audit_log.py::test_a_file_that_was_renamed_is_made_again_after_it_is_reopened"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(PrivateFileHandler, "reopen", lambda handler: None)
