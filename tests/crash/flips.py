"""Bit flips: one bit of a file at a time, then a start and a read of everything. No damaged data may be returned as good."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tests.crash.counts import Counts
from tests.crash.lives import Lives, settings_of
from tests.crash.medium import DIRECTORY, Image, Medium
from tests.crash.points import machine_of
from tests.crash.trial import FAILS_DIGEST, LOST, UNREADABLE, Expected, Verdict, try_start
from tests.crash.workload import small_commits
from triplicate.bookie.core.journal_format import ALIGNMENT, GROUP_HEADER, GROUP_MAGIC

NEAR_BYTES = 8
"""A zero byte counts as data if another value is this near, in bytes; other zeros are padding."""
NOTICED = (
    "bookie.footer_damaged",
    "bookie.index_rebuild",
    "bookie.torn_tail",
    "bookie.entry_log_damaged",
    "bookie.entry_log_unreadable",
    "bookie.entry_log_header_damaged",
    "bookie.entry_log_ends_early",
    "bookie.last_entry_unreadable",
    "bookie.entry_logs_missing",
)
"""Traces of a bookie that met damage and could do without the damaged part."""


IN_LAST_GROUP = "ledger 4 entry 1:"
"""Prefix of a problem with the contents of the small workload's last journal group."""


async def run_small_workload(lives: Lives) -> None:
    """A finished and an open entry log, an index in both of its files, a mark, and a journal with several groups behind the mark."""
    await lives.start()
    for ledger_id in range(1, 5):
        await lives.create(ledger_id)
    await lives.add_some(1, range(3), b"a" * 20)
    await lives.fence(2)
    await lives.write_lac(1, 1)
    await lives.stop()
    await lives.start()
    await lives.add_some(3, range(2), b"b" * 30)
    await lives.flush()
    await lives.add_some(1, range(3, 5), b"c" * 20)
    await lives.fence(3)
    await lives.add(4, 0, b"d" * 25)
    await lives.write_lac(1, 3)
    await lives.add(4, 1, b"e" * 25)


@lru_cache(maxsize=1)
def small_disk() -> tuple[Image, Expected]:
    """The disk after a kill behind the small workload."""
    machine = machine_of(settings_of(1))
    lives = Lives(machine, settings_of(1))
    with small_commits():
        machine.run(run_small_workload(lives))
    lives.kill()
    machine.close()
    return machine.disk.medium.live, Expected(lives.book, lives.place, True, lives.metadata_at[-1][1])


@dataclass(frozen=True, slots=True)
class Flip:
    path: str
    offset: int
    bit: int
    without_index: bool
    """Whether the index is removed, so that the start rebuilds it and reads every file."""


def flips(image: Image, step: int, first: int, ending: str = "") -> Iterator[Flip]:
    """One bit of every `step`-th data byte, all eight of every 16th such byte, in files with one of these name endings."""
    places: list[Flip] = []
    for path, number in sorted(image.names.items()):
        data = image.files[number] if number != DIRECTORY else b""
        if "RESERVE" in path or not path.endswith(ending):
            continue
        for offset in range(len(data)):
            if any(data[max(0, offset - NEAR_BYTES) : offset + NEAR_BYTES + 1]):
                for bit in range(8) if len(places) % 16 == 0 else (offset % 8,):
                    places.append(Flip(path, offset, bit, False))
                    if path.endswith(".entries"):
                        places.append(Flip(path, offset, bit, True))
    yield from places[first::step]


def try_flips(step: int, first: int, ending: str = "") -> Counts:
    """Try every `step`-th flip, beginning with number `first`."""
    counts = Counts()
    image, expected = small_disk()
    for flip in flips(image, step, first, ending):
        counts.tried["bit flips"] += 1
        damaged = image.copy()
        damaged.mine(damaged.names[flip.path])[flip.offset] ^= 1 << flip.bit
        if flip.without_index:
            damaged.names = {path: number for path, number in damaged.names.items() if "/index.db" not in path}
        with small_commits():
            verdict = try_start(Medium(damaged), settings_of(1), expected)
        outcome, problems = judge(flip, verdict, last_group(image))
        counts.outcomes[f"{kind_of(flip.path)}: {outcome}"] += 1
        counts.lose(f"{flip}", problems)
    return counts


def kind_of(path: str) -> str:
    name = path.rpartition("/")[2]
    for end, kind in ((".journal", "journal"), (".entries", "entry log"), ("index.db", "index"), ("-commits", "index's commits")):
        if name.endswith(end):
            return kind
    return {"VERSION": "cookie"}.get(name, name)


def last_group(image: Image) -> tuple[str, int]:
    """The newest journal file with a group, and the offset of its last group: no other group may count as torn."""
    for path in sorted((path for path in image.names if path.endswith(".journal")), reverse=True):
        data = bytes(image.files[image.names[path]])
        number = int(path.rpartition("/")[2].removesuffix(".journal"))
        # Groups of the file's earlier life do not count.
        heads = ((offset, GROUP_HEADER.unpack_from(data, offset)) for offset in range(0, len(data), ALIGNMENT))
        offsets = [offset for offset, head in heads if (head[0], head[3]) == (GROUP_MAGIC, number)]
        if offsets:
            return path, offsets[-1]
    raise AssertionError("no journal file has a group")


def is_named(path: str, message: str) -> bool:
    """Whether the reason names the file. A file of commits may be named by its database, a cookie as its directory's VERSION file."""
    directory, _, name = path.partition("/current/")
    return path.removesuffix("-commits") in message or (name == "VERSION" and f"{directory}: its VERSION file" in message)


def judge(flip: Flip, verdict: Verdict, last: tuple[str, int]) -> tuple[str, list[str]]:
    """How the flip was noticed, and the problems with that."""
    if verdict.refused is not None:
        named = is_named(flip.path, str(verdict.refused))
        return "refused to start", [] if named else [f"the refusal does not name the file: {verdict.refused}"]
    traced = [kind for kind, facts in verdict.facts if kind in NOTICED and not (flip.without_index and kind == "bookie.index_rebuild")]
    torn = [facts for kind, facts in verdict.facts if kind == "bookie.torn_tail"]
    by_reader = [problem for problem in verdict.problems if UNREADABLE in problem or FAILS_DIGEST in problem]
    rest = [problem for problem in verdict.problems if problem not in by_reader and "the index had to be rebuilt" not in problem]
    if torn:
        # A damaged last group looks like a write that a power cut interrupted: it is reported, and only its contents are missing.
        wrong = by_reader + [problem for problem in rest if not (LOST in problem and problem.startswith(IN_LAST_GROUP))]
        if (flip.path, flip.offset) < last:
            wrong.append(f"a group that others follow is taken for torn: {torn}")
        # A header without groups behind it: the file was not in use yet.
        where = (flip.path, 0) if flip.path > last[0] else last
        if [(facts["path"], facts["offset"]) for facts in torn] != [where]:
            wrong.append(f"the torn tail is reported elsewhere than at {last}: {torn}")
        return "reported as a torn tail", wrong
    # An error about damage also refuses an old writer.
    rest = [problem for problem in rest if "IO_ERROR" not in problem]
    if any(FAILS_DIGEST in problem for problem in by_reader):
        return "noticed by the client's digest", rest
    if by_reader:
        return "answered with an I/O error", rest
    if traced:
        return "noticed at the start, nothing missing", rest
    return "not read", rest
