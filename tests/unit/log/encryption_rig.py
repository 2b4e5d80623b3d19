"""Clients with keys, and an encrypted log."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.log.fake import Stage
from triplicate.ledger import Entry
from triplicate.log import KnownKeys, LogClientSettings, Logs, LogSettings
from triplicate.log.core.encryption import ENTRIES, WRITTEN, LedgerEncryptor

KEY, OLD_KEY = bytes(range(32)), bytes(range(32, 64))
KEYS = {"old": OLD_KEY, "new": KEY}
SECRET = b"nobody but the reader knows this"


def with_keys(stage: Stage, keys: dict[str, bytes] | None = None, settings: LogClientSettings | None = None) -> Logs:
    """Another client, with these keys."""
    logs = stage.logs(settings)
    return Logs(logs.client, logs.settings, keys=KnownKeys(KEYS if keys is None else keys))


async def encrypted_log(stage: Stage, settings: LogSettings | None = None, key_id: str = "new", name: str = "l") -> Logs:
    """A client with keys, and an empty encrypted log."""
    logs = with_keys(stage)
    await logs.create(name, settings or LogSettings(compression="none"), key_id=key_id)
    return logs


def stored(stage: Stage) -> bytes:
    """Every payload of every ledger."""
    return b"".join(entry.payload for ledger in stage.bookies.ledgers.values() for entry in ledger.entries)


def put(stage: Stage, ledger_id: int, entry_id: int, payload: bytes) -> None:
    """Put another payload in the place of an entry, as a bookie that cheats could."""
    entries = stage.bookies.ledger(ledger_id).entries
    entries[entry_id] = replace(entries[entry_id], payload=payload)


def encryptor(
    ledger_id: int = 5, *, key: bytes = KEY, log_id: str = "ab" * 16, salt: bytes = b"s" * 16, origin: int = WRITTEN
) -> LedgerEncryptor:
    return LedgerEncryptor("new", key, ENTRIES, log_id, ledger_id, salt, origin)


def entry_of(payload: bytes, ledger_id: int = 5, entry_id: int = 3) -> Entry:
    return Entry(ledger_id, entry_id, entry_id - 1, len(payload), payload)
