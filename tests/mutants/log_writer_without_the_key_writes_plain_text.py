"""A writer that lacks the key of an encrypted log writes plain text in place of a refusal."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/test_logs_encrypted.py::test_a_writer_without_the_key_refuses_and_disturbs_nobody"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.store.log_encryption import LogEncryption

    encryptor = LogEncryption._encryptor

    def careless(self: LogEncryption, name: str, log_id: str, key_id: str, *more: object) -> object:
        return encryptor(self, name, log_id, key_id if self.keys.find(key_id) else "", *more)  # type: ignore[arg-type]

    patch(LogEncryption, "_encryptor", careless)
    patch(LogEncryption, "check", lambda *_: None)
