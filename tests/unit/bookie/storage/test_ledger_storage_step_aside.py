"""A flush of many ledgers lets other threads of the process have the interpreter between its pieces: appends go on meanwhile."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from triplicate.bookie.core.checksum import Buffer
from triplicate.bookie.core.file_header import FileIdentity
from triplicate.bookie.core.ledger_data import LedgerData
from triplicate.bookie.core.write_cache import Frozen
from triplicate.bookie.storage.ledger_storage import LEDGERS_AT_ONCE, LedgerStorage
from triplicate.config import BookieSettings
from triplicate.runtime import real_host
from triplicate.runtime.real import no_trace
from triplicate.runtime.real_disk import RealDisk

LEDGERS = 400
ENTRY = bytes(64)


def frozen_of(ledgers: int) -> Frozen:
    tables: dict[int, dict[int, Buffer]] = {ledger_id: {0: ENTRY, 1: ENTRY} for ledger_id in range(ledgers)}
    return Frozen(tables, 0, [LedgerData(ledger_id, bytes(20), False, None, False) for ledger_id in range(ledgers)])


class Flushing:
    def __init__(self, folder: Path) -> None:
        self.asides = 0
        identity = FileIdentity("bookie", "instance", 0, 1)
        self.stored = LedgerStorage.open(RealDisk(), [str(folder)], identity, BookieSettings(), no_trace, 0, self._step_aside)

    def _step_aside(self) -> None:
        self.asides += 1

    def taken(self) -> int:
        """How often it stepped aside since the last question."""
        asides, self.asides = self.asides, 0
        return asides


def test_a_flush_steps_aside_again_and_again_while_it_writes_and_while_it_tells_the_index(tmp_path: Path) -> None:
    flushing = Flushing(tmp_path)
    written = flushing.stored.write_logs(1, frozen_of(LEDGERS))
    assert flushing.taken() == LEDGERS // LEDGERS_AT_ONCE
    flushing.stored.write_index(written)
    assert flushing.taken() >= 10
    flushing.stored.close(finish=True)


def test_whoever_frees_what_was_flushed_of_many_ledgers_steps_aside(tmp_path: Path) -> None:
    flushing = Flushing(tmp_path)
    frozen = frozen_of(LEDGERS)
    frozen.drop(flushing._step_aside)
    assert flushing.taken() >= 6
    assert not any(frozen.tables.values())
    flushing.stored.close(finish=True)


def test_a_flush_of_few_ledgers_loses_no_time(tmp_path: Path) -> None:
    flushing = Flushing(tmp_path)
    flushing.stored.write_index(flushing.stored.write_logs(1, frozen_of(LEDGERS_AT_ONCE - 1)))
    assert not flushing.taken()
    flushing.stored.close(finish=True)


def test_stepping_aside_gives_the_interpreter_to_who_waits_for_it() -> None:
    async def begin() -> None:
        host, went_on, done = real_host("node"), [0], threading.Event()

        def other() -> None:
            while not done.is_set():
                went_on[0] += 1

        thread = threading.Thread(target=other)
        thread.start()
        try:
            before = went_on[0]
            # Once is enough unless the machine has other things to do.
            for _ in range(100):
                if went_on[0] == before:
                    host.step_aside()
            assert went_on[0] > before
        finally:
            done.set()
            thread.join()

    asyncio.run(begin())
