"""The end of what may have been acknowledged, which proves that a copy of a log is up to date."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from tests.unit.log.fake import Stage, play
from triplicate.errors import ReadFailed
from triplicate.log import LogSettings
from triplicate.log.reading import written_end
from triplicate.log.reading.written_end import UNOWNED_LIMIT_S, await_acknowledged
from triplicate.runtime import Host
from triplicate.sim import World


def test_a_record_counts_before_it_can_be_read() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", LogSettings())
        assert await logs.written_end("l") == 0
        async with await logs.writer("l", owner="w") as writer:
            assert await logs.written_end("l") == 0
            await writer.append_entry([b"a", b"b"])
            assert await logs.written_end("l") == 2
            (ledger,) = [ledger for ledger in stage.bookies.ledgers.values() if len(ledger.entries) > 1]
            ledger.held = []
            append = asyncio.get_running_loop().create_task(writer.append_entry([b"c"]))
            while not ledger.held:
                await asyncio.sleep(0)
            assert await logs.end_offset("l") < 3
            assert await logs.written_end("l") == 3
            held, ledger.held = ledger.held, None
            for future, entry_id in held:
                future.set_result(entry_id)
            await append
        assert await logs.written_end("l") == 3

    play(scene)


def test_records_of_all_segments_count() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", LogSettings(roll_size_bytes=1024, compression="none"))
        async with await logs.writer("l", owner="w") as writer:
            for number in range(40):
                await writer.append_entry([b"%04d" % number * 100])
                assert await logs.written_end("l") == number + 1
            assert len(await logs.segments("l")) > 1
        await logs.truncate("l", 30)
        assert await logs.written_end("l") == 40

    play(scene)


# Until what was acknowledged can be read.


def test_an_idle_writer_makes_what_it_has_acknowledged_readable() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", LogSettings())
        assert await logs.acknowledged_end("l") == 0
        async with await logs.writer("l", owner="w") as writer:
            for number in range(1, 20):
                await writer.append(b"x")
                assert await logs.acknowledged_end("l") == number
        assert await logs.acknowledged_end("l") == 19

    play(scene)


@dataclass
class HostOnly:
    host: Host


def seconds_awaited(
    monkeypatch: pytest.MonkeyPatch, *readable: int, written: tuple[int, ...] = (3,), owned: tuple[bool, ...] = (True,)
) -> float:
    """How long one waits for a log, in virtual time, whose successive answers are these; the last of each is repeated."""
    answers: dict[str, list[Any]] = {"readable_end": list(readable), "find_written_end": list(written), "live_owner": list(owned)}

    def answering(question: str) -> Any:
        async def answer(*_: object) -> object:
            left = answers[question]
            found = left.pop(0) if len(left) > 1 else left[0]
            return (found or None) if question == "live_owner" else found

        return answer

    for question in answers:
        monkeypatch.setattr(written_end, question, answering(question))
    world = World(1)

    async def main() -> float:
        client: Any = HostOnly(world.start_host("a").port)
        began = client.host.clock.monotonic()
        unused: Any = None
        await await_acknowledged(client, unused, unused, "l")
        took_s: float = client.host.clock.monotonic() - began
        return took_s

    return world.run(main())


def test_a_log_whose_records_can_be_read_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seconds_awaited(monkeypatch, 3) == 0
    assert seconds_awaited(monkeypatch, 7) == 0


def test_a_log_is_looked_at_ever_more_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seconds_awaited(monkeypatch, 2, 3) <= 0.05
    assert 7 < seconds_awaited(monkeypatch, *[2] * 30, 3) < 15


def test_a_take_over_ends_the_wait_for_a_record_that_it_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seconds_awaited(monkeypatch, 2, written=(3, 3, 2)) < 1


def test_a_writer_that_never_makes_its_last_record_readable_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ReadFailed, match="records up to offset 3, and after 60 s only those before 2 can be read"):
        seconds_awaited(monkeypatch, 2)


def test_without_a_writer_it_ends_after_a_while_and_not_while_the_next_one_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert UNOWNED_LIMIT_S <= seconds_awaited(monkeypatch, 2, owned=(False,)) < UNOWNED_LIMIT_S + 1
    # 20 looks take up to 9 s.
    changing = (*[True] * 20, *[False] * 20, True)
    assert seconds_awaited(monkeypatch, *[2] * 60, 3, owned=changing) > UNOWNED_LIMIT_S
