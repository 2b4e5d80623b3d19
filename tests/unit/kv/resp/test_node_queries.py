"""Commands that ask for keys without naming them, on a copy whose keys have mostly expired."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.unit.kv.held_store_log import HeldStoreLog, SetClocks, play, store_at
from triplicate.kv import Delete, Expiry, LevelKind, Put, ReplicatedStore, StoreBatch
from triplicate.kv.engine.replicated_store import SHORT_READ_KEYS
from triplicate.kv.resp.core.connection_commands import SetLevel
from triplicate.kv.resp.node_queries import NodeFacts, random_key
from triplicate.kv.resp.store_session import StoreSession
from triplicate.kv.storage import rocks_copy

SKIPPED = 10
EXPIRED = 500


@dataclass
class SameBytes:
    """Stands in the place of a host: its random bytes are all this one."""

    byte: int

    @property
    def entropy(self) -> SameBytes:
        return self

    def stream(self, _: str) -> SameBytes:
        return self

    def randbytes(self, size: int) -> bytes:
        return bytes([self.byte]) * size


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The limits of the pages that are read. A page passes over few expired keys."""
    limits, original = list[int](), rocks_copy.RocksCopy.scan

    def scan(self: rocks_copy.RocksCopy, keys: Any, limit: int, *more: Any, **named: Any) -> rocks_copy.ScannedPage:
        limits.append(limit)
        return original(self, keys, limit, *more, **named)

    monkeypatch.setattr(rocks_copy, "SKIPPED_KEYS", SKIPPED)
    monkeypatch.setattr(rocks_copy.RocksCopy, "scan", scan)
    return limits


@pytest.mark.parametrize("live", [[], [b"\x00"], [b"\x90"], [b"\xff\xff"]], ids=["none", "before the bytes", "behind them", "at the end"])
def test_a_random_key_is_found_among_expired_ones_in_short_pages_that_pass_each_key_once(
    tmp_path: Path, limits: list[int], live: list[bytes]
) -> None:
    async def scene(leader: ReplicatedStore, log: HeldStoreLog, clock: SetClocks) -> None:
        draw = random.Random(7)
        expired = [Put(draw.randbytes(4), b"v", Expiry(after_ms=1000)) for _ in range(EXPIRED)]
        await leader.execute(StoreBatch([*expired, Put(b"mark", b"v")]))
        clock.wall_ms += 1000
        await leader.execute(StoreBatch([Delete(b"mark"), *(Put(key, b"v") for key in live)]))
        follower, _ = store_at(tmp_path / "follower")
        await follower.open()
        # The follower has none of the entries by which the leader deletes expired keys.
        entries = [entry for entry in log.sent if entry.first_offset < 2]
        await follower._worker.run(follower._local.apply, entries)
        follower._committed((), follower._state)
        facts: Any = SameBytes(0x80)
        session = StoreSession(level=SetLevel(LevelKind.ANY))
        assert await random_key(NodeFacts(facts, list), follower, session) == (live[0] if live else None)
        assert session.read_position == follower.position
        await follower.close()

    play(tmp_path, scene)
    assert limits[0] == 1
    assert sum(limit <= SHORT_READ_KEYS for limit in limits) <= 2, "further pages are read on a thread"
    assert len(limits) <= EXPIRED // SKIPPED + 2
