"""Publishers that are remembered, and those that are forgotten: no batch is published twice."""

from __future__ import annotations

import pytest

from tests.unit.log.fake import Stage, play
from tests.unit.log.publish_rig import staged
from triplicate.errors import CorruptionError, FormatError, PublisherForgotten
from triplicate.log import LogClientSettings
from triplicate.log.core.forgotten_publishers import FORGOTTEN_MAXIMUM, ForgottenPublishers, decode_forgotten, digest_of, encode_forgotten

MONTH_US = 31 * 86_400 * 1_000_000


def test_a_publisher_stays_known_however_long_it_is_idle() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        await logs.publish("l", [await staged(logs, [b"a"])], application="old", batch=1)
        stage.wall_us = stage.host.clock.wall_us() + 12 * MONTH_US
        assert (await logs.sweep("l"))["publishers"] == 0
        assert (await logs.publish("l", [await staged(logs, [b"a"])], application="old", batch=1)).already

    play(scene)


def test_a_batch_of_a_forgotten_publisher_is_refused_by_name() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(LogClientSettings(publishers_kept=1))
        await logs.create("l")
        await logs.publish("l", [await staged(logs, [b"a"])], application="old", batch=7)
        stage.wall_us = stage.host.clock.wall_us() + MONTH_US
        await logs.publish("l", [], application="new", batch=1)
        assert (await logs.sweep("l", dry_run=True))["publishers"] == 1
        assert await logs.last_batch("l", "old") is not None
        assert (await logs.sweep("l"))["publishers"] == 1
        assert await logs.last_batch("l", "old") is None
        for batch in (6, 7):
            with pytest.raises(PublisherForgotten, match=rf"batch {batch} of 'old' was published"):
                await logs.publish("l", [await staged(logs, [b"a"])], application="old", batch=batch)
        assert await logs.end_offset("l") == 1
        # It goes on where it left off, and a publisher that was never there begins.
        assert not (await logs.publish("l", [await staged(logs, [b"b"])], application="old", batch=8)).already
        assert not (await logs.publish("l", [await staged(logs, [b"c"])], application="third", batch=0)).already

    play(scene)


def test_the_time_of_a_publisher_is_the_stores() -> None:
    async def scene(stage: Stage) -> None:
        settings = LogClientSettings(publishers_kept=0)
        hasty = stage.logs(settings, ahead_s=100 * 86_400.0)
        await hasty.create("l")
        await stage.logs(ahead_s=-100 * 86_400.0).publish("l", [], application="app", batch=1)
        assert (await hasty.sweep("l"))["publishers"] == 0

    play(scene)


def test_of_forgotten_publishers_a_bounded_number_is_kept() -> None:
    forgotten = ForgottenPublishers()
    for number in range(FORGOTTEN_MAXIMUM + 10):
        forgotten = forgotten.with_publisher(f"app {number}", 2**62 + number)
    data = encode_forgotten(forgotten)
    assert len(data) < 64 * 1024
    again = decode_forgotten(data, "l")
    assert again == forgotten
    assert again.last_batch("app 9") is None
    assert again.last_batch("app 10") == 2**62 + 10
    assert again.with_publisher("app 10", 5).last_batch("app 10") == 5


def test_an_unreadable_node_of_forgotten_publishers_is_refused() -> None:
    assert decode_forgotten(b'{"publishers":[["%s",3]],"v":1}' % digest_of("app").encode(), "l").last_batch("app") == 3
    with pytest.raises(FormatError, match="version 2"):
        decode_forgotten(b'{"publishers":[],"v":2}', "l")
    for damaged in (b"", b"[]", b'{"v":1}', b'{"publishers":[1],"v":1}'):
        with pytest.raises(CorruptionError):
            decode_forgotten(damaged, "l")
