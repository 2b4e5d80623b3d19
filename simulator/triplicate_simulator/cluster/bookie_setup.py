"""Settings of the bookies of a run: drawn from the seed, so that runs differ in directories, sizes, and background work."""

from __future__ import annotations

import random
from collections.abc import Callable

from triplicate.config import BookieSettings
from triplicate_simulator.cluster.plan import KIB, BookieSetup

JOURNAL_DIRECTORY = "/data/journal"
LEDGER_DIRECTORY = "/data/ledgers"
"""The first directory of each kind. The others have the same name with a number appended."""
PREALLOCATE_BYTES = 64 * KIB
PLAIN_RATE = 0.35
"""Share of runs with the plainest bookies."""


def directories_of(first: str, count: int) -> tuple[str, ...]:
    """The directories of one kind."""
    return (first, *(f"{first}-{number}" for number in range(2, count + 1)))


def journal_directories(storage: BookieSetup) -> tuple[str, ...]:
    return directories_of(JOURNAL_DIRECTORY, storage.journal_directories)


def ledger_directories(storage: BookieSetup) -> tuple[str, ...]:
    return directories_of(LEDGER_DIRECTORY, storage.ledger_directories)


def bookie_settings(storage: BookieSetup) -> Callable[[str], BookieSettings]:
    """The settings of each bookie, by its id."""

    def settings_of(bookie_id: str) -> BookieSettings:
        return BookieSettings(
            bookie_id=bookie_id,
            journal_directories=journal_directories(storage),
            ledger_directories=ledger_directories(storage),
            advertised_address=bookie_id,
            journal_preallocate_bytes=PREALLOCATE_BYTES,
            journal_file_bytes=storage.journal_file_bytes,
            write_cache_bytes=storage.write_cache_bytes,
            flush_interval_s=storage.flush_interval_s,
            entry_log_bytes=storage.entry_log_bytes,
            gc_interval_s=storage.gc_interval_s,
            trash_period_s=storage.trash_period_s,
            compaction_threshold=storage.compaction_threshold,
            compaction_interval_s=storage.compaction_interval_s,
            major_compaction_threshold=storage.major_compaction_threshold,
            major_compaction_interval_s=storage.major_compaction_interval_s,
            disk_check_interval_s=1.0,
            disk_usage_threshold=storage.disk_usage_threshold,
            disk_usage_low_water=min(0.93, storage.disk_usage_threshold),
            reserve_bytes=storage.reserve_bytes,
            recovery_adds_free_bytes=storage.recovery_adds_free_bytes,
        )

    return settings_of


def draw_bookie_setup(rng: random.Random) -> BookieSetup:
    """Draw the settings of a run's bookies."""
    if rng.random() < PLAIN_RATE:
        return BookieSetup()
    compacts = rng.random() < 0.6
    return BookieSetup(
        journal_directories=rng.choice([1, 1, 2]),
        ledger_directories=rng.choice([1, 2, 2, 3]),
        journal_file_bytes=rng.choice([64 * KIB, 256 * KIB]),
        write_cache_bytes=rng.choice([64 * KIB, 128 * KIB]),
        flush_interval_s=rng.choice([0.5, 1.0, 3.0]),
        entry_log_bytes=rng.choice([16 * KIB, 64 * KIB, 128 * KIB]),
        gc_interval_s=rng.choice([1.0, 4.0]),
        compaction_threshold=rng.choice([0.2, 0.5]),
        compaction_interval_s=rng.choice([2.0, 5.0]) if compacts else 3600.0,
        major_compaction_threshold=rng.choice([0.8, 0.99]),
        major_compaction_interval_s=rng.choice([7.0, 20.0]) if compacts else 86_400.0,
        trash_period_s=rng.choice([0.0, 10.0, 10.0]),
        reserve_bytes=rng.choice([0, 256 * KIB]),
        disk_usage_threshold=rng.choice([0.95, 1.0]),
        recovery_adds_free_bytes=rng.choice([64 * KIB, 64 * 1024 * KIB]),
    )
