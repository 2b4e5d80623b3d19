"""Start a bookie on the disk after a crash, and compare it with the book.

Acknowledged entries are readable, fenced ledgers stay fenced, deleted ones stay deleted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.crash.book import NEVER, Book, LedgerBook, wanted
from tests.crash.lives import Lives, Nodes, codec_of
from tests.crash.machine import Machine
from tests.crash.medium import Medium, Operation, Sync, SyncDirectory
from triplicate.config import BookieSettings
from triplicate.errors import DigestMismatch, TriplicateError
from triplicate.ledger import decode_availability
from triplicate.sim.virtual_loop import SimulationStuck
from triplicate.wire import (
    AddRequest,
    ListEntriesRequest,
    ListEntriesResponse,
    ReadLacRequest,
    ReadLacResponse,
    ReadRequest,
    ReadResponse,
    Status,
)

PROBE_ENTRY = 5000
"""An entry id that no workload uses; with it a trial checks whether an old writer is refused."""
LOST = "acknowledged and lost"
UNREADABLE = "cannot be read"
FAILS_DIGEST = "fails its digest"
MISSING = (Status.NO_ENTRY, Status.NO_LEDGER)


@dataclass(slots=True)
class Expected:
    """The expectations of a start: the book at a place in the record, after a kill or a power cut."""

    book: Book
    place: int
    killed: bool
    nodes: Nodes
    """The nodes of the metadata."""
    without_index: bool = False
    """Whether the index was removed and must be rebuilt; a crash alone never makes that necessary."""
    taken: bool = False
    """Whether an earlier start behind that place, not recorded in the book, may have deleted entries of deleted ledgers."""


@dataclass(slots=True)
class Verdict:
    problems: list[str] = field(default_factory=list)
    facts: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    record: list[Operation] = field(default_factory=list)
    """The disk operations of the start, a collection and a flush."""
    metadata_at: list[tuple[int, Nodes]] = field(default_factory=list)
    taking_from: int = NEVER
    """The place from which its collection may have deleted entries of deleted ledgers."""
    refused: BaseException | None = None
    """Why the bookie did not start."""


def try_start(medium: Medium, settings: BookieSettings, expected: Expected, *, deep: bool = False) -> Verdict:
    """Start a bookie and read everything. Changes the medium.

    Args:
        deep: also collect garbage, flush, compact, and read again.
    """
    machine = Machine(medium)
    lives = Lives(machine, settings, expected.nodes)
    verdict = Verdict(facts=machine.facts, metadata_at=lives.metadata_at)
    try:
        machine.run(_tried(lives, expected, verdict, deep))
    except (TriplicateError, OSError, SimulationStuck) as error:
        verdict.problems.append(f"{type(error).__name__}: {error}")
    finally:
        lives.kill()
        machine.close()
    verdict.problems += [f"a failure on the loop: {failure}" for failure in machine.loop.failures]
    return verdict


async def _tried(lives: Lives, expected: Expected, verdict: Verdict, deep: bool) -> None:
    try:
        await lives.start()
    except (TriplicateError, OSError, AssertionError) as error:
        verdict.refused = error
        verdict.record = list(lives.machine.disk.record)
        verdict.problems.append(f"the bookie does not start: {type(error).__name__}: {error}")
        return
    rebuilt = [facts for kind, facts in lives.machine.facts if kind == "bookie.index_rebuild"]
    if rebuilt and not expected.without_index:
        verdict.problems.append(f"the index had to be rebuilt: {rebuilt[0]['reason']}")
    verdict.problems += await ask_everything(lives, expected)
    if deep:
        await lives.collect()
        verdict.taking_from = lives.taking_from
        await lives.flush()
        await lives.compact()
        await lives.collect()
        verdict.problems += [f"after a collection: {problem}" for problem in await ask_everything(lives, expected, collected=True)]
    verdict.record = list(lives.machine.disk.record)
    verdict.problems += await try_old_writers(lives, expected)


async def ask_everything(lives: Lives, expected: Expected, *, collected: bool = False) -> list[str]:
    """Read every entry, list, and last-add-confirmed without a connection in between; return the problems."""
    problems: list[str] = []
    for ledger_id, book in expected.book.ledgers.items():
        handle = await lives.machine.as_process(lives.running.storage.load(ledger_id))
        deleted = book.deleted <= expected.place
        # A ledger in the trash may be undeleted, so all its entries are kept.
        may_be_gone = book.taken < expected.place or ((collected or expected.taken) and deleted)
        must_be_gone = (book.collected <= expected.place and not expected.without_index) or (collected and deleted)
        found: dict[int, bytes] = {}
        unread: set[int] = set()
        for entry_id in range(max(book.entries, default=-1) + 2):
            answer = lives.answer(ReadRequest(ledger_id, entry_id), handle)
            assert isinstance(answer, ReadResponse)
            problem = _entry_problem(ledger_id, book, expected, entry_id, answer, may_be_gone)
            if problem:
                problems.append(f"ledger {ledger_id} entry {entry_id}: {problem}")
            if answer.body is not None:
                found[entry_id] = answer.body
            elif answer.status not in MISSING:
                unread.add(entry_id)
        more = list_problems(lives.answer(ListEntriesRequest(ledger_id), handle), found, unread)
        explicit = lives.answer(ReadLacRequest(ledger_id), handle)
        assert isinstance(explicit, ReadLacResponse)
        more += _lac_problems(book, expected, explicit, may_be_gone)
        if must_be_gone and (found or unread or explicit.lac_body is not None):
            more.append("deleted, collected, and still there")
        problems += [f"ledger {ledger_id}: {problem}" for problem in more]
    return problems


def _entry_problem(
    ledger_id: int, book: LedgerBook, expected: Expected, entry_id: int, answer: ReadResponse, may_be_gone: bool
) -> str | None:
    want = wanted(book.entries.get(entry_id, []), expected.place, killed=expected.killed)
    if answer.status in MISSING:
        return f"{LOST} ({answer.status.name})" if want is not None and want.required and not may_be_gone else None
    if answer.status is not Status.OK or answer.body is None:
        return f"{UNREADABLE} ({answer.status.name})"
    try:
        codec_of(ledger_id).decode(answer.body, entry_id)
    except DigestMismatch:
        return FAILS_DIGEST
    if want is None:
        return "was never written, and is there"
    if answer.body not in want.allowed:
        return "an older copy, or other bytes, stand for what was acknowledged last"
    return None


def list_problems(answer: object, found: dict[int, bytes], unread: set[int]) -> list[str]:
    """The list must contain the entries that were read, and beyond them only those that the bookie reported as damaged."""
    assert isinstance(answer, ListEntriesResponse)
    if answer.status in MISSING:
        return [f"it is there, and has no list ({answer.status.name})"] if found or unread else []
    if answer.status is not Status.OK or answer.availability is None:
        return [f"its list {UNREADABLE} ({answer.status.name})"]
    listed = [entry_id for run in decode_availability(answer.availability).runs() for entry_id in run]
    good = found.keys() <= set(listed) <= found.keys() | unread and listed == sorted(set(listed))
    return [] if good else [f"listed are {listed}, read were {sorted(found)}, damaged are {sorted(unread)}"]


def _lac_problems(book: LedgerBook, expected: Expected, answer: ReadLacResponse, may_be_gone: bool) -> list[str]:
    want = wanted(book.lacs, expected.place, killed=expected.killed)
    if answer.status not in (Status.OK, *MISSING):
        return [f"its last-add-confirmed {UNREADABLE} ({answer.status.name})"]
    if answer.lac_body is None:
        return [f"its explicit last-add-confirmed: {LOST}"] if want is not None and want.required and not may_be_gone else []
    if want is None or answer.lac_body not in want.allowed:
        return ["its explicit last-add-confirmed is an older one, or was never written"]
    return []


async def try_old_writers(lives: Lives, expected: Expected) -> list[str]:
    """Add to every ledger as a writer without knowledge of fences would. This changes the ledgers, so it comes last."""
    problems: list[str] = []
    caller = lives.caller()
    for ledger_id, book in expected.book.ledgers.items():
        codec = codec_of(ledger_id)
        body = codec.encode(PROBE_ENTRY, -1, 0, b"probe")
        status = getattr(await caller.ask(AddRequest(ledger_id, PROBE_ENTRY, codec.master_key, body)), "status", None)
        fenced = any(claim.answered <= expected.place for claim in book.fences)
        asked = any(claim.asked < expected.place for claim in book.fences)
        if fenced and status is not Status.FENCED:
            problems.append(f"ledger {ledger_id}: its fence: {LOST}, an old writer's add is {status!r}")
        elif not asked and status is not Status.OK:
            problems.append(f"ledger {ledger_id}: was never fenced, and a writer's add is {status!r}")
    return problems


def syncs_of(record: list[Operation]) -> list[int]:
    """Number of operations up to and including each sync."""
    return [number + 1 for number, operation in enumerate(record) if isinstance(operation, Sync | SyncDirectory)]
