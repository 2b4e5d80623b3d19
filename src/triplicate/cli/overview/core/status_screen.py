"""The facts about a cluster as the lines of one screen."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from textwrap import wrap

from triplicate.cli.overview.core.cluster_facts import (
    UNSTATED_LOCATION,
    BookieFacts,
    BookieState,
    ClusterFacts,
    CopyFacts,
    LedgerCounts,
    LogFacts,
    MarkFacts,
    ProgressFacts,
    ReplicaFacts,
)
from triplicate.cli.overview.core.cluster_problems import Problem, age_text, is_bad_bookie, is_bad_log, is_bad_replica, problems_of
from triplicate.cli.overview.core.text_table import Section, TableRow, counted, cut_text, divide_room, section_lines, size_text

WIDTH = 80
HEIGHT = 40
PIPE_WIDTH = 160
"""Where the output is no terminal. A pipe has no width, and names that are cut are lost."""
WIDTH_LEAST = 8
PROBLEM_LINES_MAX = 12
TEXT_LINES_MAX = 3
"""Lines of one problem's text."""
LATE_S = 15.0
"""A record of a repair's progress that is older is shown with its age: its worker hangs, or its metadata store did not answer."""


def screen_lines(facts: ClusterFacts, width: int = WIDTH, height: int = HEIGHT) -> list[str]:
    """The screen: verdict, problems, bookies, databases, stores if there are any, logs, under-replicated ledgers.

    At most `height` lines of `width` characters. Rows that do not fit are counted, and rows with problems are kept before the others.
    """
    problems = problems_of(facts)
    lines = [cut_text(_verdict(facts, problems), width), *_problem_lines(problems, width)]
    stores = [_stores(facts)] if facts.stores.items or facts.stores.cut else []
    sections = [_bookies(facts), _databases(facts), *stores, _logs(facts), _marks(facts)]
    room = height - len(lines) - sum(1 + section.frame_lines for section in sections)
    shares = divide_room([len(section.rows) for section in sections], room)
    for section, share in zip(sections, shares, strict=True):
        lines += ["", *section_lines(section, share, width)]
    return lines


def _verdict(facts: ClusterFacts, problems: Sequence[Problem]) -> str:
    state = "HEALTHY" if not problems else f"{len(problems)} PROBLEM" + ("S" if len(problems) > 1 else "")
    now = datetime.fromtimestamp(facts.time_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{state}: cluster {facts.instance_id}, {now}"


def _problem_lines(problems: Sequence[Problem], width: int) -> list[str]:
    """Each problem with its command, which has a line of its own if both do not fit into one. Long texts go on in further lines."""
    lines: list[str] = []
    for place, one in enumerate(problems):
        text, command = f"! {one.text}", f" > {one.command}"
        is_short = len(text) + len(command) <= width
        own = [text + command] if is_short else [*_wrapped(text, width), cut_text(f"   {command}", width)]
        if len(lines) + len(own) > PROBLEM_LINES_MAX - (place + 1 < len(problems)):
            return [*lines, cut_text(f"  … and {len(problems) - place} more: triplicate cluster status --json", width)]
        lines += own
    return lines


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(text, max(width, WIDTH_LEAST), subsequent_indent="  ", break_on_hyphens=False, max_lines=TEXT_LINES_MAX, placeholder=" …")


def _bookies(facts: ClusterFacts) -> Section:
    bookies, counts = facts.bookies, facts.ledgers
    states = {state: sum(one.state is state for one in bookies.items) for state in BookieState}
    by_state = ", ".join(f"{count} {state}" for state, count in states.items() if count) if facts.has_bookie else "none runs"
    ledgers = (f"{counts.total}+ ledgers" if counts.cut else counted(counts.total, "ledger")) + f", {counts.open} open"
    title = f"BOOKIES {len(bookies.items)}{_cut(bookies.cut)}" + (f": {by_state}" if by_state else "") + f"; {ledgers}"
    located = any(one.location != UNSTATED_LOCATION for one in bookies.items)
    headings = ("location", "host") if located else ("host",)
    rows = []
    for one in bookies.items:
        location = "-" if one.state is BookieState.LOST else one.location
        place = (location, one.host or "-") if located else (one.host or "-",)
        rows.append(
            TableRow(
                (*place, one.bookie_id, _state_text(one) if facts.has_bookie else "absent", _disk_text(one), _ledgers_of(one, counts)),
                is_bad_bookie(one),
            )
        )
    return Section(
        title, (*headings, "bookie", "state", "disk free", "ledgers"), tuple(rows), ("disk free", "ledgers"), "triplicate bookie list"
    )


def _state_text(bookie: BookieFacts) -> str:
    if bookie.silence and bookie.state is not BookieState.UNREADABLE:
        return f"{bookie.state}, silent"
    return str(bookie.state) if bookie.visited else f"{bookie.state}, unvisited"


def _disk_text(bookie: BookieFacts) -> str:
    if bookie.free_bytes is None or bookie.total_bytes is None:
        return "-"
    return f"{size_text(bookie.free_bytes)} of {size_text(bookie.total_bytes)}"


def _ledgers_of(bookie: BookieFacts, counts: LedgerCounts) -> str:
    return f"{counts.by_bookie.get(bookie.bookie_id, 0)}{'+' if counts.cut else ''}"


def _databases(facts: ClusterFacts) -> Section:
    found, nodes = facts.databases, facts.nodes
    running = sum(one.is_running for one in nodes.items)
    expected = running + len(facts.absent_nodes)
    on = f"{running}{f' of {expected}' if running < expected else ''}{_cut(nodes.cut)}"
    title = f"DATABASES {len(found.items)}{_cut(found.cut)} on {on} {'node' if on == '1' else 'nodes'}"
    rows = [TableRow(_replica_cells(one), is_bad_replica(one)) for one in found.items]
    return Section(title, ("database", "leader", "copies"), tuple(rows), command="triplicate database list")


def _stores(facts: ClusterFacts) -> Section:
    found = facts.stores
    rows = [TableRow(_replica_cells(one), is_bad_replica(one)) for one in found.items]
    return Section(f"STORES {len(found.items)}{_cut(found.cut)}", ("store", "leader", "copies"), tuple(rows), command="triplicate kv list")


def _replica_cells(replica: ReplicaFacts) -> tuple[str, ...]:
    copies = ", ".join(_copy_text(one) for one in replica.copies if one.node_id != replica.leader or one.role not in ("leader", ""))
    counted = f"{replica.expected - replica.missing} of {replica.expected}: " if replica.expected else ""
    return replica.name, replica.leader or "none", counted + (copies or "no other copy")


def _copy_text(copy: CopyFacts) -> str:
    lag = f" -{copy.lag}" if copy.lag else ""
    return f"{copy.node_id} {copy.role or 'follower'}{lag}"


def _logs(facts: ClusterFacts) -> Section:
    title = f"LOGS {len(facts.logs.items)}{_cut(facts.logs.cut)}"
    rows = [TableRow(_log_cells(one), is_bad_log(one)) for one in facts.logs.items]
    headings = ("log", "writer", "open ledger", "segments", "reduced", "missing", "lost")
    return Section(title, headings, tuple(rows), headings[2:], "triplicate log list")


def _log_cells(log: LogFacts) -> tuple[str, ...]:
    ledger = "-" if log.open_ledger is None else str(log.open_ledger)
    return log.name, log.writer or "-", ledger, str(log.segments), str(log.reduced), str(len(log.missing)), str(log.lost)


def _marks(facts: ClusterFacts) -> Section:
    recovery = facts.recovery
    state = "unknown" if recovery.cut else "enabled" if recovery.enabled else "disabled"
    auditor = "" if recovery.cut else f", auditor {recovery.auditor or 'none'}"
    locked = sum(one.worker is not None for one in facts.marks.items)
    repaired = f", {locked} in repair{_speed(facts.marks.items)}" if locked else ""
    title = f"UNDER-REPLICATED {len(facts.marks.items)}{_cut(facts.marks.cut)}{repaired}; auto-recovery {state}{auditor}"
    has_reasons, has_progress = any(one.reason for one in facts.marks.items), any(one.progress for one in facts.marks.items)
    rows = []
    for one in facts.marks.items:
        progress = (progress_text(one.progress),) if has_progress else ()
        reason = (one.reason or "-",) if has_reasons else ()
        rows.append(TableRow((*_mark_cells(one, facts.time_ms), *progress, *reason), one.worker is None))
    further = (*(("copied",) if has_progress else ()), *(("reason",) if has_reasons else ()))
    headings = ("ledger", "missing on", "since", "locked by", *further)
    return Section(title, headings, tuple(rows), ("ledger", "since"), "triplicate cluster under-replicated")


def _speed(marks: Sequence[MarkFacts]) -> str:
    """The rate of all repairs that record one, as an addition to their number."""
    running = [one.progress for one in marks if one.progress is not None]
    if not running:
        return ""
    return f" at {size_text(round(sum(one.bytes_per_s for one in running)))}/s, {sum(one.entries_per_s for one in running):.0f} entries/s"


def progress_text(progress: ProgressFacts | None) -> str:
    """Entries copied, rate and time left."""
    if progress is None:
        return "-"
    whole = "" if progress.expected_entries is None else f" of {progress.expected_entries}"
    left = "" if progress.left_s is None else f", {age_text(round(1000 * progress.left_s))} left"
    late = f", {age_text(round(1000 * progress.age_s))} ago" if progress.age_s > LATE_S else ""
    return f"{progress.entries}{whole}, {size_text(round(progress.bytes_per_s))}/s{left}{late}"


def _mark_cells(mark: MarkFacts, now_ms: int) -> tuple[str, ...]:
    age = "-" if mark.since_ms is None else age_text(now_ms - mark.since_ms)
    worker = "-" if mark.worker is None else mark.worker or "a worker"
    return str(mark.ledger_id), ", ".join(mark.missing) or "none: misplaced", age, worker


def _cut(reason: str) -> str:
    return " or more" if reason else ""
