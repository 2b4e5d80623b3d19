"""The rule for producers that number their records: each number that was acknowledged is in the log once, and all are in their order."""

from __future__ import annotations

from triplicate_simulator.checkers.history import Checker, History, Verdict
from triplicate_simulator.checkers.log_rules import FinalLogRead, LogRead
from triplicate_simulator.checkers.numbered_events import NumberedAcknowledged, NumberedRefused, NumberedSubmitted

Numbered = tuple[str, str, int]
"""A record: log, producer, and sequence number."""


def numbered_records_are_there_once(history: History, verdict: Verdict) -> None:
    """A record that was acknowledged is in the log, at the offset that was acknowledged; it was appended by one append, and by none of the
    others; no number is missing before one that is there; and numbers rise with offsets. That none is there twice is rule 1 of logs."""
    firsts = {event.log: event.first_offset for event in history.of(FinalLogRead)}
    places: dict[tuple[str, bytes], int] = {}
    for read in history.of(LogRead):
        for place, record in enumerate(read.records, read.first_offset):
            places.setdefault((read.log, record), place)
    offered: dict[tuple[str, str], dict[int, bytes]] = {}
    for submitted in history.of(NumberedSubmitted):
        offered.setdefault((submitted.log, submitted.producer), {})[submitted.sequence] = submitted.record
    acknowledged: dict[Numbered, int] = {}
    fresh: set[Numbered] = set()
    for event in history.of(NumberedAcknowledged):
        verdict.decided += 1
        numbered = event.log, event.producer, event.sequence
        what = f"{event.producer} #{event.sequence} of {event.log}, acknowledged at {event.time_s:.6f}"
        if not event.is_duplicate and numbered in fresh:
            verdict.violations.append(f"{what}, was appended by an append before")
        if not event.is_duplicate:
            fresh.add(numbered)
        known = acknowledged.get(numbered, -1)
        if event.offset >= 0 and known not in (-1, event.offset):
            verdict.violations.append(f"{what} at offset {event.offset}, was acknowledged at {known} before")
        acknowledged[numbered] = max(known, event.offset)
    for (log, producer), records in sorted(offered.items()):
        if log in firsts:
            found = {sequence: places.get((log, record)) for sequence, record in records.items()}
            answered = {sequence: acknowledged.get((log, producer, sequence)) for sequence in records}
            _judge(f"{producer} in {log}", found, answered, firsts[log], verdict)


def acknowledged_numbers_are_known(history: History, verdict: Verdict) -> None:
    """A writer does not call a number a gap whose predecessor was acknowledged before, by a writer of its epoch or an earlier one."""
    acknowledged: dict[Numbered, int] = {}
    for event in history.events:
        match event:
            case NumberedAcknowledged():
                numbered = event.log, event.producer, event.sequence
                acknowledged[numbered] = min(event.epoch, acknowledged.get(numbered, event.epoch))
            case NumberedRefused():
                verdict.decided += 1
                epoch = acknowledged.get((event.log, event.producer, event.sequence - 1))
                if epoch is not None and epoch <= event.epoch:
                    what = f"#{event.sequence} of {event.producer} in {event.log}"
                    when = f"at {event.time_s:.6f} in epoch {event.epoch}"
                    verdict.violations.append(
                        f"{what} was refused as a gap {when}, and #{event.sequence - 1} was acknowledged in epoch {epoch}"
                    )


def _judge(what: str, found: dict[int, int | None], answered: dict[int, int | None], first_offset: int, verdict: Verdict) -> None:
    """Judge one producer.

    Args:
        found: by number, where a reader has found the record; None: nowhere.
        answered: by number, the offset that was acknowledged; -1: one that is not known, None: it was not acknowledged.
        first_offset: the log's first offset at the end; records before it may be gone unread.
    """
    before: tuple[int, int] | None = None
    missing: list[int] = []
    for sequence in sorted(found):
        place, offset = found[sequence], answered[sequence]
        verdict.decided += 1
        if place is None:
            # It is known not to be truncated if an earlier one is not.
            if not first_offset or (before is not None and before[1] >= first_offset) or (offset is not None and offset >= first_offset):
                missing.append(sequence)
                if offset is not None:
                    verdict.violations.append(f"#{sequence} of {what} was acknowledged (offset {offset}) and is not there")
            continue
        if offset is not None and offset not in (-1, place):
            verdict.violations.append(f"#{sequence} of {what} is at {place}, and was acknowledged at {offset}")
        if before is not None and place <= before[1]:
            verdict.violations.append(f"#{sequence} of {what} is at {place}, and #{before[0]} at {before[1]}")
        if missing:
            verdict.violations.append(f"#{sequence} of {what} is at {place}, and #{missing[0]} before it is not there")
            missing.clear()
        before = sequence, place


NUMBERING_CHECKERS: dict[str, Checker] = {
    "numbered_records_are_there_once": numbered_records_are_there_once,
    "acknowledged_numbers_are_known": acknowledged_numbers_are_known,
}
