"""A backup in clear is verified and restored beside a key without a word: it may stand in the place of an encrypted one."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/process/test_database_commands.py::test_an_encrypted_backup_needs_its_key_file_and_one_in_clear_is_noted_beside_it",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.cli.data_commands import backup_commands

    patch(backup_commands, "note_clear", lambda path, manifest: None)
