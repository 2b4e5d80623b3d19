"""The audits of all ledgers: each walks over the metadata of every ledger, and marks those that lack copies.

An audit may be interrupted and repeated, and several processes may audit at the same time: a mark that is there already is not changed.
Source: BookKeeper `AuditorBookieCheckTask`, `AuditorCheckAllLedgersTask`, `AuditorReplicasCheckTask`, `AuditorPlacementPolicyCheckTask`.
"""

from __future__ import annotations

import enum
from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import NamedTuple

from triplicate.autorecovery.auditor_metrics import AuditorMetrics
from triplicate.autorecovery.copy_pace import CopyPace
from triplicate.autorecovery.core.fragments import ended_fragments
from triplicate.autorecovery.ledger_check import LedgerChecker, bookies_to_mark, codec_of, report_damaged
from triplicate.autorecovery.ledger_walk import walk_ledgers
from triplicate.autorecovery.move_planner import MISPLACED, MovePlanner
from triplicate.client import BookieCopies, Client
from triplicate.errors import (
    ArgumentError,
    BookieError,
    CopyUnreadable,
    CorruptionError,
    DigestMismatch,
    FormatError,
    LedgerError,
    NoSuchLedger,
    PeerError,
)
from triplicate.ledger import Adherence, LedgerMetadata
from triplicate.metadata import BookieServiceInfo
from triplicate.runtime import map_bounded

LEDGERS_AT_ONCE = 8
FINDINGS_MAX = 1000
"""Findings, and ledgers that were not examined, that a report lists. Its numbers count all."""
ANSWER_LIMIT_S = 10.0
"""Longest wait of a check for one answer of a bookie."""


class Audit(enum.Enum):
    """The audits, by the name of their option."""

    LOST = "lost"
    """Ledgers that name lost bookies."""
    LEDGERS = "ledgers"
    """Ledgers of which a bookie lacks the first or last entry of a fragment."""
    REPLICAS = "replicas"
    """Ledgers of which a bookie does not list an entry."""
    PLACEMENT = "placement"
    """Ledgers whose ensembles break the rules of placement. They are marked only on request."""


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """One ledger that an audit found.

    Args:
        bookies: those that lack copies; none for a finding about placement.
    """

    ledger_id: int
    bookies: tuple[str, ...]
    reason: str


@dataclass(slots=True)
class AuditReport:
    """The result of one audit.

    Attributes:
        ledgers: number of ledgers that were walked over.
        found: number of findings. `findings` has the first of them.
        unexamined: number of ledgers that could not be examined. `problems` has the reasons of the first of them, by ledger.
        is_complete: False if auto-recovery was disabled before the end.
    """

    audit: Audit
    ledgers: int = 0
    found: int = 0
    findings: list[AuditFinding] = field(default_factory=list)
    unexamined: int = 0
    problems: dict[int, str] = field(default_factory=dict)
    is_complete: bool = True

    def add(self, finding: AuditFinding) -> None:
        """Count a finding."""
        self.found += 1
        if len(self.findings) < FINDINGS_MAX:
            self.findings.append(finding)

    def fail(self, ledger_id: int, reason: str) -> None:
        """Count a ledger that could not be examined."""
        self.unexamined += 1
        if len(self.problems) < FINDINGS_MAX:
            self.problems[ledger_id] = " ".join(reason.split())


class ExaminedLedger(NamedTuple):
    """A ledger and its metadata as the walk has read them."""

    ledger_id: int
    metadata: LedgerMetadata


class LedgerAudits:
    """The audits of one cluster.

    Args:
        pace: limits the share of the time in which ledgers are examined.
        dry_run: mark nothing.
        obeys_disable: end an audit when auto-recovery is disabled.
        marks_misplaced_as: name under which the audit `PLACEMENT` marks ledgers whose copies can be moved; empty to mark none.
    """

    def __init__(
        self,
        client: Client,
        pace: CopyPace,
        metrics: AuditorMetrics,
        *,
        dry_run: bool = False,
        obeys_disable: bool = False,
        marks_misplaced_as: str = "",
    ) -> None:
        self._client = client
        self._metadata = client.metadata
        self._pace = pace
        self._metrics = metrics
        self._dry_run = dry_run
        self._obeys_disable = obeys_disable
        self._marks_misplaced_as = marks_misplaced_as
        self.named: dict[str, None] = {}
        """The bookies that the ledgers of the last complete audit `LOST` name."""

    async def run(self, audit: Audit, lost: Collection[str] | None = None) -> AuditReport:
        """Run one audit.

        Args:
            lost: for `Audit.LOST` only: the bookies to regard as lost if they are not registered; None for all.

        Raises:
            ArgumentError: no bookie is registered at all. MetadataError: the metadata store failed.
        """
        began = self._client.host.clock.monotonic()
        bookies = await self._metadata.bookies.registered()
        registered = bookies.names
        if not bookies.infos:
            raise ArgumentError(
                "no bookie is registered, so nothing can be said about copies; start bookies, or check the cluster's address"
            )
        report = AuditReport(audit)
        if audit is Audit.LOST:
            await self._find_lost(report, registered, lost)
        elif audit is Audit.PLACEMENT:
            await self._check_placement(report, bookies.infos)
        else:
            await self._check_copies(report, registered)
        self._metrics.seconds.labels(audit.value).set(self._client.host.clock.monotonic() - began)
        self._metrics.unexamined.labels(audit.value).set(report.unexamined)
        self._client.host.trace(
            "autorecovery.audit", audit=audit.value, ledgers=report.ledgers, found=report.found, unexamined=report.unexamined
        )
        return report

    # Lost bookies.

    async def _find_lost(self, report: AuditReport, registered: Collection[str], lost: Collection[str] | None) -> None:
        named: dict[str, None] = {}
        async with aclosing(self._batches(report)) as batches:
            async for batch in batches:
                for ledger_id, metadata in batch:
                    bookies = dict.fromkeys(bookie_id for segment in metadata.segments for bookie_id in segment.ensemble)
                    named |= bookies
                    missing = tuple(name for name in bookies if name not in registered and (lost is None or name in lost))
                    if missing:
                        await self._mark(report, AuditFinding(ledger_id, missing, "the bookie is lost"))
        if report.is_complete:
            self.named = named

    # Checks of copies.

    async def _check_copies(self, report: AuditReport, registered: Collection[str]) -> None:
        without_copy = 0
        async with self._client.bookie_copies() as requests, aclosing(self._batches(report)) as batches:

            async def check(ledger: ExaminedLedger) -> bool:
                await self._pace.admit(0)
                try:
                    if report.audit is Audit.LEDGERS:
                        found = await self._lacking_ends(requests, ledger, registered)
                        has_copies = True
                    else:
                        checker = LedgerChecker(self._client, ledger.ledger_id, ANSWER_LIMIT_S, requests=requests)
                        copies = await checker.check()
                        lacking = bookies_to_mark(copies, registered)
                        has_copies = not copies.without_copy
                        reason = "entries are not listed" if has_copies else f"no list has entry {copies.without_copy[0].start}"
                        found = AuditFinding(ledger.ledger_id, lacking, reason)
                        if not self._dry_run:
                            await report_damaged(self._client, copies)
                except NoSuchLedger:
                    return True
                except (LedgerError, PeerError, CorruptionError, FormatError) as error:
                    report.fail(ledger.ledger_id, str(error))
                    return True
                if found.bookies:
                    await self._mark(report, found)
                return has_copies

            async for batch in batches:
                results = await map_bounded(check, batch, most=LEDGERS_AT_ONCE, name=f"check of {report.audit.value}")
                without_copy += results.count(False)
                self._metrics.checked.inc(len(batch))
        if report.audit is Audit.REPLICAS:
            self._metrics.without_copy.set(without_copy)

    async def _lacking_ends(self, requests: BookieCopies, ledger: ExaminedLedger, registered: Collection[str]) -> AuditFinding:
        """The bookies without an intact copy of the first or last entry of one of their fragments.

        The last segment of an open ledger is left out. A registered bookie that does not answer proves nothing.
        """
        ledger_id, metadata = ledger
        codec = codec_of(ledger_id, metadata)
        lacking: dict[str, None] = {}
        for fragment in ended_fragments(metadata):
            bookie_id = fragment.bookie_id
            if bookie_id in lacking:
                continue
            if bookie_id not in registered:
                lacking[bookie_id] = None
                continue
            for entry_id in fragment.ends():
                try:
                    is_absent = await requests.read(codec, entry_id, bookie_id) is None
                except (DigestMismatch, CopyUnreadable):
                    is_absent = True
                    if not self._dry_run:
                        run = range(entry_id, entry_id + 1)
                        await self._metadata.damaged_copies.report(ledger_id, bookie_id, [run])
                except BookieError:
                    break
                if is_absent:
                    lacking[bookie_id] = None
                    break
        return AuditFinding(ledger_id, tuple(lacking), "the first or last entry of a fragment is missing or damaged")

    # Placement.

    async def _check_placement(self, report: AuditReport, registered: dict[str, BookieServiceInfo]) -> None:
        planner = MovePlanner(self._client)
        targets = await planner.targets()
        counts = dict.fromkeys(Adherence, 0)
        async with aclosing(self._batches(report)) as batches:
            async for batch in batches:
                await self._pace.admit(0)
                for ledger_id, metadata in batch:
                    verdict, plan = await planner.plan(metadata, targets, registered)
                    counts[verdict.adherence] += 1
                    reason = "; ".join((*verdict.reasons, *plan.refused))
                    if self._marks_misplaced_as and plan.moves:
                        await self._mark_misplaced(report, ledger_id, reason)
                    elif verdict.adherence is Adherence.FAILED:
                        report.add(AuditFinding(ledger_id, (), reason))
        if report.is_complete:
            self._metrics.misplaced.set(counts[Adherence.FAILED])
            self._metrics.softly_placed.set(counts[Adherence.SOFT])

    async def _mark_misplaced(self, report: AuditReport, ledger_id: int, reason: str) -> None:
        """Mark a ledger without naming a bookie, as BookKeeper's auditor does. The reason is noted, unless it is marked already."""
        if not self._dry_run and await self._metadata.under_replication.get(ledger_id) is None:
            await self._metadata.repair_notes.record(ledger_id, f"{MISPLACED}: {reason}", self._marks_misplaced_as)
        await self._mark(report, AuditFinding(ledger_id, (), reason))

    # Helpers.

    async def _batches(self, report: AuditReport) -> AsyncGenerator[list[ExaminedLedger]]:
        """All ledgers with readable metadata, some at a time. Ends early if auto-recovery is disabled."""
        batch: list[ExaminedLedger] = []
        async with aclosing(walk_ledgers(self._client)) as ledgers:
            async for ledger in ledgers:
                report.ledgers += 1
                if ledger.metadata is None:
                    report.fail(ledger.ledger_id, "its metadata cannot be decoded")
                    continue
                batch.append(ExaminedLedger(ledger.ledger_id, ledger.metadata))
                if len(batch) < LEDGERS_AT_ONCE:
                    continue
                if self._obeys_disable and not await self._metadata.under_replication.is_enabled():
                    report.is_complete = False
                    return
                yield batch
                batch = []
        if batch:
            yield batch

    async def _mark(self, report: AuditReport, finding: AuditFinding) -> None:
        report.add(finding)
        if not self._dry_run:
            await self._metadata.under_replication.mark(finding.ledger_id, finding.bookies)
            self._metrics.marked.labels(report.audit.value).inc()
