"""Encrypted logs: nothing of a record leaves the client in clear, also when it is published or copied; keys change without an outage."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.log.encryption_rig import KEY, KEYS, SECRET, encrypted_log, put, stored, with_keys
from tests.unit.log.fake import Stage, play, read_values
from tests.unit.log.publish_rig import staged
from tests.unit.log.snapshot_rig import content_of, write_snapshot
from triplicate.errors import ArgumentError, CorruptionError, EntryNotAuthentic, FormatError, LogKeyMissing, LogOwned
from triplicate.log import CHUNK_BYTES, LogClientSettings, Logs, LogSettings, StagingOrigin, decode_header
from triplicate.log.core.compression import Compressor
from triplicate.log.core.join_plan import JOIN_LEAST
from triplicate.log.core.payload_encoder import columns_of, encode_columns
from triplicate.log.store.key_file import add_key

JOINED = JOIN_LEAST
"""Enough ledgers to be joined."""
AT_ONCE = LogClientSettings(merge_after_s=0.0)


def keys_used(stage: Stage, ledger_id: int) -> set[str]:
    """Ids of the keys under which the entries of a ledger are encrypted."""
    headers = [decode_header(entry.payload) for entry in stage.bookies.ledger(ledger_id).entries]
    assert all(header.encryption is not None for header in headers)
    return {header.encryption.key_id for header in headers if header.encryption is not None}


async def read_ranges(logs: Logs, end: int) -> list[bytes | None]:
    values: list[bytes | None] = []
    for planned in await logs.plan("l", 0, end, 2):
        async with logs.read_range(planned) as reading:
            async for entry in reading:
                values += entry.values
    return values


async def write(logs: Logs, *values: bytes) -> int:
    """Append records in a segment of their own. Returns its ledger."""
    async with await logs.writer("l", owner="w") as writer:
        await writer.append_many(values)
        return writer.ledger_id


def test_records_come_back_and_bookies_have_nothing_in_clear() -> None:
    async def scene(stage: Stage) -> None:
        logs = await encrypted_log(stage)
        async with await logs.writer("l", owner="who writes") as writer:
            await writer.append(SECRET, key=SECRET, headers=[("secret name", SECRET)])
            await writer.append_entry([SECRET, None], preamble=SECRET)
            await writer.control("abort", {"why": SECRET.decode()})
        found = stored(stage)
        assert SECRET not in found
        assert b"secret name" not in found
        assert b"who writes" not in found
        other = with_keys(stage)
        assert await read_values(other, "l", 0, 3) == [SECRET, SECRET, None]
        assert await read_ranges(other, 3) == [SECRET, SECRET, None]
        async with await other.reader("l", include_control=True) as reader:
            kinds = [(await reader.next_entry(5)).control for _ in range(3)]  # type: ignore[union-attr]
        assert kinds[0] is not None
        assert kinds[0]["writer"] == "who writes"

    play(scene)


def test_a_writer_without_the_key_refuses_and_disturbs_nobody() -> None:
    async def scene(stage: Stage) -> None:
        logs = await encrypted_log(stage)
        async with await logs.writer("l", owner="w") as writer:
            for keys in ({}, {"old": KEY}):
                with pytest.raises(LogKeyMissing, match="log 'l' is encrypted with key 'new', which is not in"):
                    await with_keys(stage, keys).writer("l", owner="other")
            with pytest.raises(LogKeyMissing, match=r"log_client\.keys_file"):
                await stage.logs().writer("l", owner="other")
            await writer.append(b"goes on")
            assert writer.failure is None
        ledgers = set(stage.bookies.ledgers)
        with pytest.raises(LogKeyMissing):
            await stage.logs().staging(StagingOrigin("l"))
        with pytest.raises(LogKeyMissing):
            await stage.logs().check_publish("l")
        assert set(stage.bookies.ledgers) == ledgers, "no ledger was created for nothing"

    play(scene)


def test_a_log_is_created_only_with_a_key_that_is_there() -> None:
    async def scene(stage: Stage) -> None:
        with pytest.raises(LogKeyMissing, match="key 'mistyped'"):
            await with_keys(stage).create("l", key_id="mistyped")
        with pytest.raises(ArgumentError, match="no id of a key"):
            await with_keys(stage).create("l", key_id="no id")
        assert await stage.logs().names() == []

    play(scene)


def test_a_reader_without_the_key_says_so_and_goes_on_once_it_has_it() -> None:
    async def scene(stage: Stage) -> None:
        await write(await encrypted_log(stage), b"a", b"b")
        keys: dict[str, bytes] = {}
        logs = with_keys(stage, keys)
        async with await logs.reader("l") as reader:
            for _ in range(2):
                with pytest.raises(LogKeyMissing):
                    await reader.next_entry(5)
            logs._encryption.keys._keys.update(KEYS)  # type: ignore[attr-defined]
            entry = await reader.next_entry(5)
            assert entry is not None
            assert entry.values == [b"a", b"b"]

    play(scene)


def test_the_wrong_key_is_a_failed_authentication_that_names_the_entry() -> None:
    async def scene(stage: Stage) -> None:
        ledger_id = await write(await encrypted_log(stage), b"a")
        with pytest.raises(EntryNotAuthentic, match=f"log 'l': entry 0 of ledger {ledger_id} does not decrypt under key 'new'"):
            await read_values(with_keys(stage, {"new": bytes(32)}), "l", 0, 1)
        assert await read_values(with_keys(stage), "l", 0, 1) == [b"a"]

    play(scene)


@pytest.mark.parametrize("how", ["reader", "ranges"])
def test_plain_text_that_is_put_into_the_ledger_is_refused(how: str) -> None:
    async def scene(stage: Stage) -> None:
        logs = await encrypted_log(stage)
        ledger_id = await write(logs, b"genuine")
        header = decode_header(stage.bookies.ledger(ledger_id).entries[1].payload)
        put(stage, ledger_id, 1, encode_columns(columns_of([b"forged!"]), Compressor("none")).payload(0, header.wall_time_us))
        with pytest.raises(EntryNotAuthentic, match=f"log 'l': entry 1 of ledger {ledger_id} is in plain text"):
            await (read_values(logs, "l", 0, 1) if how == "reader" else read_ranges(logs, 1))

    play(scene)


def test_an_entry_of_another_segment_or_log_is_refused() -> None:
    async def scene(stage: Stage) -> None:
        logs = await encrypted_log(stage)
        first, second = await write(logs, b"one"), await write(logs, b"two")
        await logs.create("other", LogSettings(compression="none"), key_id="new")
        async with await logs.writer("other", owner="w") as writer:
            await writer.append(b"else")
            foreign = writer.ledger_id
        genuine = stage.bookies.ledger(second).entries[1].payload
        for source in (first, foreign):
            put(stage, second, 1, stage.bookies.ledger(source).entries[1].payload)
            with pytest.raises(EntryNotAuthentic, match=f"entry 1 of ledger {second}"):
                await read_values(logs, "l", 1, 2)
        put(stage, second, 1, genuine)
        assert await read_values(logs, "l", 1, 2) == [b"two"]

    play(scene)


def test_published_ledgers_are_encrypted_alone_and_joined() -> None:
    async def scene(stage: Stage) -> None:
        logs = await encrypted_log(stage)
        parts = [await staged(logs, [SECRET, b"%d" % number], partition=number) for number in range(JOINED + 1)]
        joined = await logs.join_staged(StagingOrigin("l", "app"), parts[:JOINED], 1 << 20)
        assert len(joined.made) == 1
        await logs.publish("l", [*joined.ledgers, parts[JOINED]], application="app", batch=1)
        assert SECRET not in stored(stage)
        expected = [value for number in range(JOINED + 1) for value in (SECRET, b"%d" % number)]
        assert await read_values(with_keys(stage), "l", 0, len(expected)) == expected
        assert await read_ranges(with_keys(stage), len(expected)) == expected

    play(scene)


def test_a_ledger_in_plain_text_is_not_published() -> None:
    async def scene(stage: Stage) -> None:
        plain = stage.logs()
        await plain.create("l")
        parts = [await staged(plain, [b"in plain text"]) for _ in range(JOINED)]
        await plain.delete("l")
        logs = await encrypted_log(stage)
        with pytest.raises(ArgumentError, match="is in plain text, and the log is encrypted"):
            await logs.publish("l", parts)
        async with await logs.writer("l", owner="w"):
            with pytest.raises(ArgumentError, match="is in plain text, and the log is encrypted"):
                await logs.publish("l", parts)
        with pytest.raises(CorruptionError, match="an entry is in plain text, and the log is encrypted"):
            await logs.join_staged(StagingOrigin("l"), parts, 1 << 20)
        assert await logs.end_offset("l") == 0

    play(scene)


def test_an_encrypted_ledger_is_published_to_its_own_log_only() -> None:
    async def scene(stage: Stage) -> None:
        logs = await encrypted_log(stage)
        part = await staged(logs, [b"x"])
        await logs.delete("l")
        await logs.create("l", key_id="new")
        with pytest.raises(ArgumentError, match="is encrypted for log id"):
            await logs.publish("l", [part])
        await logs.delete("l")
        await logs.create("l")
        with pytest.raises(ArgumentError, match="is encrypted for log id"):
            await logs.publish("l", [part])

    play(scene)


def test_rewritten_segments_stay_encrypted_and_the_rewriter_needs_no_key() -> None:
    async def scene(stage: Stage) -> None:
        logs = await encrypted_log(stage, LogSettings(roll_size_bytes=1024, compression="none"))
        async with await logs.writer("l", owner="w") as writer:
            for number in range(12):
                await writer.append_entry([SECRET * 10 + b"%d" % number])
                await writer.control("abort", {"number": number})
        for batch in range(4):
            await logs.publish("l", [await staged(logs, [SECRET + b"%d" % batch, b"x"], batch=batch)], application="app", batch=batch)
        before = await read_values(logs, "l", 0, 20)
        done = await stage.logs(AT_ONCE).merge_small("l")
        assert done.ledgers == 2
        assert len(await logs.segments("l")) == 2
        assert SECRET not in stored(stage)
        assert await read_values(with_keys(stage), "l", 0, 20) == before
        assert await read_ranges(with_keys(stage), 20) == before
        async with await with_keys(stage).reader("l", include_control=True) as reader:
            kinds: list[str] = []
            while reader.position < 12:
                entry = await reader.next_entry(5)
                assert entry is not None
                kinds += [] if entry.control is None else [entry.control["kind"]]
        assert (kinds.count("segment"), kinds.count("noop"), kinds.count("abort") >= 11) == (1, 0, True)

    play(scene)


def test_an_entry_that_was_moved_in_a_rewritten_segment_is_refused() -> None:
    async def scene(stage: Stage) -> None:
        logs = await encrypted_log(stage)
        for value in (b"one", b"two", b"six"):
            await write(logs, value)
        await stage.logs(replace(AT_ONCE, merge_below_bytes=1 << 20)).raise_copies("l")
        segments = await logs.segments("l")
        assert len(segments) == 3
        entries = stage.bookies.ledger(segments[2].ledger_id).entries
        put(stage, segments[1].ledger_id, 1, entries[1].payload)
        with pytest.raises(EntryNotAuthentic):
            await read_values(logs, "l", 1, 2)

    play(scene)


def test_a_broken_segment_is_sent_again_encrypted_for_its_new_ledger() -> None:
    async def scene(stage: Stage) -> None:
        logs = await encrypted_log(stage)
        async with await logs.writer("l", owner="w") as writer:
            await writer.append(b"a")
            before = writer.ledger_id
            await writer._roller.roll()
            await writer.append(b"b")
            assert writer.ledger_id != before
            salts = {
                decode_header(entry.payload).encryption.salt  # type: ignore[union-attr]
                for ledger_id in (before, writer.ledger_id)
                for entry in stage.bookies.ledger(ledger_id).entries
            }
            assert len(salts) == 2, "each ledger has a derived key of its own"
        assert await read_values(logs, "l", 0, 2) == [b"a", b"b"]

    play(scene)


def test_a_rotated_key_is_used_from_the_next_segment_on_and_old_records_stay_readable() -> None:
    async def scene(stage: Stage) -> None:
        logs = await encrypted_log(stage, key_id="old")
        async with await logs.writer("l", owner="w") as writer:
            await writer.append(b"a")
            first = writer.ledger_id
            assert (await with_keys(stage).rotate_key("l")).key_id == "new"
            assert (await with_keys(stage).rotate_key("l", "new")).key_id == "new", "once more changes nothing"
            await writer.append(b"b")
            await writer._roller.roll()
            await writer.append(b"c")
            second = writer.ledger_id
        assert (keys_used(stage, first), keys_used(stage, second)) == ({"old"}, {"new"})
        assert await read_values(with_keys(stage), "l", 0, 3) == [b"a", b"b", b"c"]
        assert await read_values(with_keys(stage, {"old": KEYS["old"]}), "l", 0, 2) == [b"a", b"b"]
        with pytest.raises(LogKeyMissing, match="key 'new'"):
            await read_values(with_keys(stage, {"old": KEYS["old"]}), "l", 0, 3)
        with pytest.raises(LogKeyMissing, match="key 'new'"):
            await with_keys(stage, {"old": KEYS["old"]}).writer("l", owner="w")

    play(scene)


def test_a_living_writer_without_the_new_key_goes_on_with_the_one_it_has() -> None:
    async def scene(stage: Stage) -> None:
        await encrypted_log(stage, key_id="old")
        keys = {"old": KEYS["old"]}
        logs = with_keys(stage, keys)
        async with await logs.writer("l", owner="w") as writer:
            await writer.append(b"a")
            await with_keys(stage).rotate_key("l", "new")
            for value in (b"b", b"c"):
                await writer._roller.roll()
                await writer.append(value)
                assert keys_used(stage, writer.ledger_id) == {"old"}
            logs._encryption.keys._keys.update(KEYS)  # type: ignore[attr-defined]
            await writer._roller.roll()
            await writer.append(b"d")
            assert keys_used(stage, writer.ledger_id) == {"new"}
        assert await read_values(with_keys(stage), "l", 0, 4) == [b"a", b"b", b"c", b"d"]

    play(scene)


def test_a_log_that_was_created_without_a_key_stays_without() -> None:
    async def scene(stage: Stage) -> None:
        logs = with_keys(stage)
        await logs.create("l")
        with pytest.raises(ArgumentError, match="not encrypted: that is decided when a log is created"):
            await logs.rotate_key("l", "new")
        with pytest.raises(LogKeyMissing, match="key 'none'"):
            await logs.rotate_key("l", "none")
        ledger_id = await write(logs, SECRET)
        assert SECRET in stored(stage)
        await logs.create("other", key_id="new")
        async with await logs.writer("other", owner="w") as writer:
            await writer.append(b"x")
            put(stage, ledger_id, 1, stage.bookies.ledger(writer.ledger_id).entries[1].payload)
        with pytest.raises(FormatError, match="its log is not an encrypted one"):
            await read_values(logs, "l", 0, 1)

    play(scene)


def test_keys_come_from_the_file_that_the_settings_name(tmp_path: object) -> None:
    path = f"{tmp_path}/keys"
    add_key(path, "new", "day", lambda: KEY)

    async def scene(stage: Stage) -> None:
        logs = stage.logs(LogClientSettings(keys_file=path))
        await logs.create("l", key_id="new")
        await write(logs, b"a")
        assert await read_values(with_keys(stage), "l", 0, 1) == [b"a"]

    play(scene)


def test_the_snapshots_of_an_encrypted_log_are_encrypted() -> None:
    async def scene(stage: Stage) -> None:
        logs = await encrypted_log(stage)
        content = (SECRET * 40_000)[: CHUNK_BYTES + 100]
        snapshot = await write_snapshot(logs, content, position=0)
        assert SECRET not in stored(stage)
        assert b"page_size" not in stored(stage)
        assert await content_of(with_keys(stage), snapshot) == content
        with pytest.raises(LogKeyMissing):
            await content_of(stage.logs(), snapshot)
        with pytest.raises(LogKeyMissing):
            await write_snapshot(stage.logs(), content, position=0)
        with pytest.raises(EntryNotAuthentic, match="entry 0 of ledger"):
            await content_of(with_keys(stage, {"new": bytes(32)}), snapshot)

    play(scene)


@pytest.mark.parametrize("entry", [0, 1, 2, 3])
@pytest.mark.parametrize("damage", ["flipped", "swapped", "plain", "flag", "kind", "foreign"])
def test_a_changed_entry_of_an_encrypted_snapshot_is_refused(entry: int, damage: str) -> None:
    async def scene(stage: Stage) -> None:
        logs = await encrypted_log(stage)
        content = bytes(CHUNK_BYTES + 100)
        snapshot, other = await write_snapshot(logs, content, position=0), await write_snapshot(logs, content, position=0)
        entries = stage.bookies.ledger(snapshot.ledger_id).entries
        payload = bytearray(entries[entry].payload)
        if damage == "flipped":
            payload[-1] ^= 1
        elif damage == "swapped":
            payload = bytearray(entries[(entry + 1) % 4].payload)
        elif damage == "plain":
            payload = payload[:7] + b"\0" + payload[8:16] + payload[80:-16]
        elif damage == "flag":
            payload[7] |= 2
        elif damage == "kind":
            payload[5] = payload[5] % 3 + 1
        else:
            payload = bytearray(stage.bookies.ledger(other.ledger_id).entries[entry].payload)
        put(stage, snapshot.ledger_id, entry, bytes(payload))
        with pytest.raises(EntryNotAuthentic, match=f"entry {entry} of ledger {snapshot.ledger_id}"):
            await content_of(logs, snapshot)

    play(scene)


def test_an_encrypted_log_is_changed_by_whoever_may_change_it() -> None:
    async def scene(stage: Stage) -> None:
        logs = await encrypted_log(stage)
        async with await logs.writer("l", owner="w") as writer:
            await writer.append(b"a")
            with pytest.raises(LogOwned):
                await with_keys(stage).writer("l", owner="other", take_over=False)
            async with await with_keys(stage).writer("l", owner="other") as other:
                assert await other.append(b"b") == 1
            await writer.abandon()
        assert await read_values(logs, "l", 0, 2) == [b"a", b"b"]
        assert await stage.logs().truncate("l", 1) == 1
        await stage.logs().delete("l")

    play(scene)
