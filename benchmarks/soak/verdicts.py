"""The verdicts of a soak run. Pure: the inputs are what writers, tailers, checks of ledgers and samples of processes have recorded.

A verdict without evidence is kept. A verdict that had nothing to judge is a failure as well, unless it is marked as not due.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.soak.connections import Descriptors

SHOWN = 5
"""Examples that one piece of evidence names."""
WARM_UP_S = 60.0
"""Samples of the first seconds of a process do not count: caches fill, and modules are imported."""
JUDGED_S = 90.0
"""A process is judged if its samples after the warm-up span this time."""
GROWTH_SHARE = 0.10
GROWTH_MIB = 8.0
"""Resident memory may grow by this share of its median and by this size over the judged time. A write cache that is half full or a read
cache after a repair makes as much difference; a leak of one record in ten exceeds it within ten minutes."""
GROWTH_DESCRIPTORS = 8.0
"""Descriptors other than connections and repeated files may grow by this number over the judged time: entry logs become more. Sockets that
the other end has closed count here."""
CONNECTIONS_MAX = 4
"""Connections of one process to one server: a client has one each for adds, for batch reads and for version 3 of the protocol, copies and
recoveries have their own. Their sum over all processes is no sign of a leak: every client that talks to a bookie for the first time adds to
it, and each bookie is such a client as soon as it repairs a ledger."""
SAME_FILE_MAX = 12
"""Descriptors of one file: a leader opens a connection for each of the six clients that read at a time, and a few for its own work."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One promise and whether it was kept.

    Args:
        facts: the extent of what was judged.
        evidence: what contradicts the promise; empty if it was kept.
        is_due: False if the run was too short to judge it.
    """

    promise: str
    facts: str
    evidence: tuple[str, ...] = ()
    is_due: bool = True

    @property
    def is_kept(self) -> bool:
        return not self.evidence

    @property
    def word(self) -> str:
        return "BROKEN" if self.evidence else "kept" if self.is_due else "not judged"


@dataclass(frozen=True, slots=True)
class LogHistory:
    """The observations of the clients of one log.

    Args:
        acknowledged: offset → record, of every acknowledged append.
        sent: every record whose append was begun.
        final: the records by ascending offset, as a reader from the beginning gets them at the end.
        tailers: by name, the records in the order in which the tailer got them.
    """

    name: str
    acknowledged: Mapping[int, int]
    sent: frozenset[int]
    final: Sequence[tuple[int, int]]
    tailers: Mapping[str, Sequence[tuple[int, int]]]


def judge_records(history: LogHistory) -> Verdict:
    """Every acknowledged record is at its offset, none is there twice, and none that was never sent."""
    final = dict(history.final)
    lost = [(offset, record) for offset, record in history.acknowledged.items() if final.get(offset) != record]
    records = [record for _, record in history.final]
    seen: set[int] = set()
    doubled = [record for record in records if record in seen or seen.add(record)]  # type: ignore[func-returns-value]
    strange = [record for record in records if record not in history.sent]
    evidence = [
        f"{history.name}: {len(found)} {what}, for example {found[:SHOWN]}"
        for what, found in (
            ("acknowledged records are not at their offsets", lost),
            ("records are there twice", doubled),
            ("records were never sent", strange),
        )
        if found
    ]
    if not history.acknowledged:
        evidence.append(f"{history.name}: no append was acknowledged")
    return Verdict(
        "0 acknowledged records lost", f"{history.name}: {len(history.acknowledged)} acknowledged, {len(records)} read", tuple(evidence)
    )


def judge_order(history: LogHistory) -> Verdict:
    """Every tailer got all records, once and in the order of the log."""
    evidence = []
    for name, got in sorted(history.tailers.items()):
        first = next((place for place, (mine, wanted) in enumerate(zip(got, history.final, strict=False)) if mine != wanted), None)
        if first is not None:
            evidence.append(f"{name}: record {first + 1} is {got[first]}, and the log has {history.final[first]}")
        elif len(got) != len(history.final):
            evidence.append(f"{name}: got {len(got)} records, and the log has {len(history.final)}")
    if not history.tailers:
        evidence.append(f"{history.name}: no tailer")
    return Verdict("order equal for all tailers", f"{history.name}: {len(history.tailers)} tailers", tuple(evidence))


@dataclass(frozen=True, slots=True)
class CheckedLedger:
    """A ledger at the end of a run.

    Args:
        problems: copies that are missing or damaged, and bookies that did not answer; empty if every copy was read.
        segments: the bookies of each segment's ensemble, by position.
    """

    ledger_id: int
    problems: tuple[str, ...]
    write_quorum: int
    segments: tuple[tuple[str, ...], ...]


def judge_ledgers(ledgers: Sequence[CheckedLedger], hosts: Mapping[str, str], marked: Sequence[int], reduced: Sequence[str]) -> Verdict:
    """Every ledger has all copies of each entry, on different hosts, and none is marked as under-replicated.

    Args:
        hosts: the host of each registered bookie.
        marked: ledgers that are still marked as under-replicated.
        reduced: segments of logs that have fewer copies than their log asks for.
    """
    evidence = [f"ledger {one.ledger_id}: {problem}" for one in ledgers for problem in one.problems]
    for one in ledgers:
        for ensemble in one.segments:
            shared = together(ensemble, one.write_quorum, hosts)
            if shared:
                evidence.append(f"ledger {one.ledger_id}: copies of one entry share a host: {shared}")
    evidence += [f"ledger {ledger_id} is still marked as under-replicated" for ledger_id in marked]
    evidence += [f"{segment} lacks copies" for segment in reduced]
    if not ledgers:
        evidence.append("no ledger was checked")
    return Verdict("all copies restored, on different hosts", f"{len(ledgers)} ledgers, every copy read", tuple(evidence))


def together(ensemble: Sequence[str], write_quorum: int, hosts: Mapping[str, str]) -> str:
    """Bookies of one write set that are on one host; empty if there are none. An unregistered bookie counts as a host of its own."""
    for first in range(len(ensemble)):
        members = [ensemble[(first + step) % len(ensemble)] for step in range(write_quorum)]
        places = [hosts.get(bookie_id, bookie_id) for bookie_id in members]
        if len(set(places)) < len(places):
            return ", ".join(f"{bookie_id} on {place}" for bookie_id, place in zip(members, places, strict=True))
    return ""


@dataclass(frozen=True, slots=True)
class Sample:
    """A process at one time.

    Args:
        age_s: seconds since the process began.
    """

    age_s: float
    resident_mib: float
    descriptors: Descriptors


@dataclass(frozen=True, slots=True)
class ProcessSamples:
    """All samples of one process, from its start to its end.

    Args:
        kind: bookie, node, writers or tailers.
    """

    name: str
    kind: str
    samples: tuple[Sample, ...]


@dataclass(frozen=True, slots=True)
class Growth:
    """How much a process grew while it was judged.

    Args:
        descriptors: growth of the number of descriptors that are neither connections nor further ones of a file.
        most_to_one: median of the connections to one server.
        most_of_one: median of the descriptors of one file.
    """

    name: str
    seconds: float
    resident_mib: float
    median_mib: float
    descriptors: float
    most_to_one: float
    most_of_one: float

    @property
    def evidence(self) -> tuple[str, ...]:
        found = []
        limit = GROWTH_SHARE * self.median_mib + GROWTH_MIB
        if self.resident_mib > limit:
            found.append(
                f"{self.name}: memory grows by {self.resident_mib:.1f} MiB in {self.seconds:.0f} s from {self.median_mib:.0f} MiB, "
                f"and {limit:.1f} MiB are allowed"
            )
        if self.descriptors > GROWTH_DESCRIPTORS:
            found.append(
                f"{self.name}: descriptors other than connections and repeated files grow by {self.descriptors:.0f} "
                f"in {self.seconds:.0f} s, and {GROWTH_DESCRIPTORS:.0f} are allowed"
            )
        if self.most_to_one > CONNECTIONS_MAX:
            found.append(f"{self.name}: {self.most_to_one:.0f} connections to one server, and {CONNECTIONS_MAX} are allowed")
        if self.most_of_one > SAME_FILE_MAX:
            found.append(f"{self.name}: {self.most_of_one:.0f} descriptors of one file, and {SAME_FILE_MAX} are allowed")
        return tuple(found)


def growth_of(process: ProcessSamples) -> Growth | None:
    """The growth of a process over the second half of its life, but not in its warm-up; None if that is too short to judge."""
    if not process.samples:
        return None
    begin_s = max(WARM_UP_S, process.samples[-1].age_s / 2)
    judged = [sample for sample in process.samples if sample.age_s >= begin_s]
    seconds = judged[-1].age_s - judged[0].age_s if judged else 0.0
    if seconds < JUDGED_S:
        return None
    ages = [sample.age_s for sample in judged]
    resident = [sample.resident_mib for sample in judged]
    return Growth(
        process.name,
        seconds,
        seconds * slope(ages, resident),
        statistics.median(resident),
        seconds * slope(ages, [sample.descriptors.others for sample in judged]),
        statistics.median(sample.descriptors.most_to_one for sample in judged),
        statistics.median(sample.descriptors.most_of_one for sample in judged),
    )


def slope(at: Sequence[float], values: Sequence[float]) -> float:
    """The median of the slopes between the first and the second half of the points, pair by pair. A single peak does not change it."""
    half = len(at) // 2
    slopes = [(values[half + place] - values[place]) / (at[half + place] - at[place]) for place in range(half)]
    return statistics.median(slopes) if slopes else 0.0


def judge_growth(processes: Sequence[ProcessSamples], kinds: Sequence[str], seconds: float) -> Verdict:
    """Memory and descriptors are flat over the second half of each process's life.

    Args:
        kinds: of each, at least one process must have lived long enough to be judged.
        seconds: the duration of the run; a shorter one than the warm-up and twice the judged time is not judged.
    """
    is_due = seconds >= WARM_UP_S + 2 * JUDGED_S
    growths = {process.name: growth_of(process) for process in processes}
    evidence = [line for growth in growths.values() if growth is not None for line in growth.evidence]
    if is_due:
        evidence += [
            f"no process of kind {kind} lived long enough to be judged"
            for kind in kinds
            if not any(growths[process.name] for process in processes if process.kind == kind)
        ]
    judged = [growth for growth in growths.values() if growth is not None]
    greatest = max(judged, key=lambda growth: growth.resident_mib, default=None)
    most = f"; most: {greatest.name}, {greatest.resident_mib:+.1f} MiB in {greatest.seconds:.0f} s" if greatest else ""
    if judged:
        most += (
            f"; other descriptors {max(growth.descriptors for growth in judged):+.0f}, "
            f"to one server {max(growth.most_to_one for growth in judged):.0f} connections, "
            f"of one file {max(growth.most_of_one for growth in judged):.0f}"
        )
    return Verdict("memory and descriptors flat", f"{len(judged)} of {len(processes)} processes judged{most}", tuple(evidence), is_due)
