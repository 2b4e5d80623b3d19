"""Crash points: behind every operation of a workload, a kill or a power cut, and a start on the disk that it leaves."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import lru_cache

from tests.crash.book import Book
from tests.crash.counts import Counts
from tests.crash.cuts import Bound, Cut, cuts_of
from tests.crash.lives import Lives, Nodes, settings_of
from tests.crash.machine import Machine, empty_disk
from tests.crash.medium import Image, Medium, Operation
from tests.crash.trial import Expected, Verdict, syncs_of, try_start
from tests.crash.workload import run_workload, small_commits
from triplicate.config import BookieSettings

LOSSES_MAX = 10
"""The search within one workload ends after this number of losses."""
AGAIN_POINTS_MAX = 4
"""Number of syncs of a start at which the power is cut again."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A workload from its first to its last operation."""

    settings: BookieSettings
    base: Image
    record: list[Operation]
    book: Book
    metadata_at: list[tuple[int, Nodes]]


@dataclass(frozen=True, slots=True)
class Effort:
    """Which part of the possible trials is run.

    Args:
        orders, tears: most of each kind at one moment.
        step, first: every `step`-th operation, beginning with operation `first`.
        deep: every `deep`-th start also collects and flushes.
        rebuild: every `rebuild`-th trial is repeated without the index.
        again: in every `again`-th trial the power is cut again during the start.
    """

    orders: int
    tears: int
    step: int = 1
    first: int = 0
    deep: int = 4
    rebuild: int = 8
    again: int = 8


def machine_of(settings: BookieSettings) -> Machine:
    """A machine with empty directories."""
    return Machine(Medium(empty_disk([*settings.journal_directories, *settings.ledger_directories])))


@lru_cache(maxsize=8)
def recorded(directories: int, seed: int) -> Recording:
    """Run the workload once, without failures."""
    settings = settings_of(directories)
    machine = machine_of(settings)
    base = machine.disk.medium.durable.copy()
    lives = Lives(machine, settings)
    try:
        with small_commits():
            machine.run(run_workload(lives, seed))
    finally:
        lives.kill()
        machine.close()
    assert not machine.loop.failures, machine.loop.failures
    return Recording(settings, base, machine.disk.record, lives.book, lives.metadata_at)


def nodes_at(metadata_at: list[tuple[int, Nodes]], place: int) -> Nodes | None:
    """The metadata at that place; None if there were none yet."""
    found = None
    for at, nodes in metadata_at:
        if at <= place:
            found = nodes
    return found


def try_points(directories: int, seed: int, effort: Effort) -> Counts:
    """All crash points of one workload that `effort` covers."""
    recording = recorded(directories, seed)
    counts, bound = Counts(), Bound(effort.orders, effort.tears)
    medium = Medium(recording.base.copy())
    seen: dict[tuple[bytes, bool, int], None] = {}
    with small_commits():
        for place in range(len(recording.record) + 1):
            if place:
                medium.apply(recording.record[place - 1])
            if counts.losses >= LOSSES_MAX:
                break
            if place % effort.step == effort.first % effort.step:
                counts.tried["crash points"] += 1
                for cut in cuts_of(medium.pending, bound, seed * 1_000_003 + place):
                    _try_cut(recording, medium, cut, place, seen, counts, effort)
    counts.left_out = bound.left_out
    return counts


NAMES = {"kept": "kills", "lost": "power cuts that lose all", "order": "orders of unsynced writes", "torn": "torn writes"}


def _try_cut(
    recording: Recording, medium: Medium, cut: Cut, place: int, seen: dict[tuple[bytes, bool, int], None], counts: Counts, effort: Effort
) -> None:
    killed = cut.kind == "kept"
    if killed:
        start = medium.copy()
    else:
        image = medium.cut(cut.kept, dict(cut.torn))
        key = image.digest(), killed, place
        if key in seen:
            return
        seen[key] = None
        start = Medium(image)
    counts.tried[NAMES[cut.kind]] += 1
    number = sum(counts.tried[name] for name in NAMES.values())
    expected = Expected(recording.book, place, killed, nodes_at(recording.metadata_at, place) or {})
    again = number % effort.again == 0
    before = start.copy() if again else None
    # Without an index a torn entry log looks like a damaged one, and the bookie says so.
    rebuild = cut.kind in ("kept", "lost") and number % effort.rebuild < effort.rebuild // 2
    without_index = start.copy() if rebuild else None
    verdict = try_start(start, recording.settings, expected, deep=number % effort.deep == 0)
    where = f"{len(recording.settings.journal_directories)} directories, operation {place}, {cut.kind} {cut.kept} {cut.torn}"
    counts.lose(where, verdict.problems)
    if without_index is not None:
        counts.tried["lost indexes"] += 1
        for path in [path for path in without_index.live.names if "/index.db" in path]:
            del without_index.live.names[path]
            without_index.durable.names.pop(path, None)
        bare = replace(expected, without_index=True)
        counts.lose(f"{where}, without the index", try_start(without_index, recording.settings, bare, deep=True).problems)
    if before is not None:
        _cut_again(recording, before, verdict, expected, counts, where)


def _cut_again(recording: Recording, before: Medium, first: Verdict, expected: Expected, counts: Counts, where: str) -> None:
    """Cut the power at some syncs of the start, or of the flush behind it: with none and with some of the unsynced changes kept."""
    chance = random.Random(where)
    points = syncs_of(first.record)
    chosen = sorted(chance.sample(points, min(len(points), AGAIN_POINTS_MAX)))
    medium, done, base = before, 0, before.count
    for point in chosen:
        # One operation behind the sync, if there is one, so that an unsynced change exists.
        for number in range(done, min(point + chance.randrange(3), len(first.record))):
            medium.apply(first.record[number])
            done = number + 1
        nodes = nodes_at(first.metadata_at, base + done) or expected.nodes
        kept = [number for number in medium.pending if chance.random() < 0.5]
        for cut in ([], kept) if kept else ([],):
            counts.tried["second crashes"] += 1
            taken = first.taking_from < base + done
            again = Expected(expected.book, expected.place, False, nodes, taken=taken)
            verdict = try_start(Medium(medium.cut(cut)), recording.settings, again)
            counts.lose(f"{where}, again behind operation {done} of the start, kept {cut}", verdict.problems)
