"""The encryption of logs in one process: its keys, and the encryptors and decoders that they make."""

from __future__ import annotations

from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import ArgumentError
from triplicate.ledger import LedgerMetadata
from triplicate.log.core.encrypted_entries import EntryDecoder
from triplicate.log.core.encryption import (
    ENTRIES,
    SALT_SIZE,
    SNAPSHOT,
    STAGED,
    WRITTEN,
    KeySource,
    LedgerDecryptor,
    LedgerEncryptor,
    require_key,
)
from triplicate.log.core.head import Head
from triplicate.log.store.key_file import KeyFile, NoKeys
from triplicate.runtime import Host

MARK = "encrypted"
"""Custom metadata of staging ledgers whose entries are encrypted: the id of the log, whose encryption serves no other log."""


class LogEncryption:
    """The encryption of logs, with the keys of one process.

    Args:
        keys: None: those of `settings.keys_file`.
    """

    def __init__(self, host: Host, settings: LogClientSettings, keys: KeySource | None = None) -> None:
        self._host = host
        self.keys: KeySource = keys or (KeyFile(settings.keys_file, host.clock.monotonic) if settings.keys_file else NoKeys())

    def check(self, name: str, head: Head) -> None:
        """Check that this process can encrypt what it writes to a log. Raises LogKeyMissing, ConfigError."""
        if head.key_id:
            require_key(self.keys, name, head.key_id)

    def of_writer(self, name: str, log_id: str, key_id: str, ledger_id: int) -> LedgerEncryptor | None:
        """The encryptor of a segment of the log's writer; None where `key_id` is empty. Raises LogKeyMissing, ConfigError."""
        return self._encryptor(name, log_id, key_id, ledger_id, ENTRIES, WRITTEN)

    def of_staging(self, name: str, head: Head, ledger_id: int) -> LedgerEncryptor | None:
        """The encryptor of a staging ledger; None where the log is not encrypted. Raises LogKeyMissing, ConfigError."""
        return self._encryptor(name, head.log_id, head.key_id, ledger_id, ENTRIES, STAGED)

    def of_snapshot(self, name: str, head: Head, ledger_id: int) -> LedgerEncryptor | None:
        """The encryptor of a snapshot's ledger; None where the log is not encrypted. Raises LogKeyMissing, ConfigError."""
        return self._encryptor(name, head.log_id, head.key_id, ledger_id, SNAPSHOT, WRITTEN)

    def _encryptor(self, name: str, log_id: str, key_id: str, ledger_id: int, domain: bytes, origin: int) -> LedgerEncryptor | None:
        if not key_id:
            return None
        key = require_key(self.keys, name, key_id)
        return LedgerEncryptor(key_id, key, domain, log_id, ledger_id, self._host.entropy.secret(SALT_SIZE), origin)

    def following(self, encryptor: LedgerEncryptor, log_id: str, ledger_id: int) -> LedgerEncryptor:
        """An encryptor for the next ledger, under the key of the one before."""
        return encryptor.following(log_id, ledger_id, self._host.entropy.secret(SALT_SIZE))

    def decoder(self, name: str, log_id: str, *, is_encrypted: bool) -> EntryDecoder:
        """A decoder for one reader of a log."""
        return EntryDecoder(name, log_id, self.keys if is_encrypted else None)

    def snapshot_decryptor(self, name: str, head: Head) -> LedgerDecryptor | None:
        """A decryptor for a snapshot of a log; None where the log is not encrypted."""
        return LedgerDecryptor(name, head.log_id, self.keys, SNAPSHOT) if head.key_id else None


def staging_mark(head: Head) -> dict[str, str]:
    """The custom metadata of a staging ledger for a log that concern its encryption."""
    return {MARK: head.log_id} if head.key_id else {}


def check_staging_mark(name: str, head: Head, ledger_id: int, metadata: LedgerMetadata) -> None:
    """Check that a staging ledger is encrypted for a log, or is plain as the log is.

    Raises:
        ArgumentError: plain text would get into an encrypted log, or entries that nobody could decrypt into any log.
    """
    found = metadata.custom.get(MARK, b"").decode(errors="replace")
    if found == (head.log_id if head.key_id else ""):
        return
    reason = "is in plain text, and the log is encrypted" if not found else f"is encrypted for log id {found}, which this log has not"
    raise ArgumentError(f"ledger {ledger_id} {reason}: log {name!r} cannot list it; write the batch again")


def is_copied(metadata: LedgerMetadata) -> bool:
    """Whether the entries of a ledger were copied from other ledgers: by a rewriting, or by joining staging ledgers."""
    return "rewritten" in metadata.custom or "joined" in metadata.custom
