"""Replay reads every group of the journal into one buffer, and the write cache keeps references to it (BookKeeper issue 1737)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from triplicate.wire import ADD_HEAD_BYTES

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.chunk_entries import entries_of
    from triplicate.bookie.core.journal_format import JournalGroup
    from triplicate.bookie.core.write_cache import WriteCache
    from triplicate.bookie.storage import storage_replay
    from triplicate.bookie.storage.storage_replay import StorageReplay

    replay_group = StorageReplay._replay_group
    get = WriteCache.get
    shared = bytearray(8 * 1024 * 1024)
    replaying: list[bytes] = []

    def into_one_buffer(self: StorageReplay, group: JournalGroup, where: str) -> None:
        shared[: len(group.body)] = group.body
        replaying.append(group.body)
        try:
            replay_group(self, group, where)
        finally:
            replaying.pop()

    def referring(buffer: bytes, offsets: Sequence[int]) -> tuple[list[Any], int]:
        entries, held_bytes = entries_of(buffer, offsets)
        if not replaying:
            return entries, held_bytes
        view = memoryview(shared)
        return [view[start + ADD_HEAD_BYTES : end] for start, end in pairwise(offsets)], held_bytes

    def its_bytes_now(self: WriteCache, ledger_id: int, entry_id: int) -> bytes | None:
        entry = get(self, ledger_id, entry_id)
        return None if entry is None else bytes(entry)

    patch(StorageReplay, "_replay_group", into_one_buffer)
    patch(WriteCache, "get", its_bytes_now)
    patch(storage_replay, "entries_of", referring)
