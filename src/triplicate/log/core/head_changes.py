"""The changes of a log's head, as pure functions from one head to the next.

A change holds the new head and the new pages it refers to. New pages have no number yet: the head and pages above refer to the page at
index i of `Change.pages` as -(i + 1). The shell writes the pages in order and inserts their numbers by `numbered`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from triplicate.config.log_settings import LogSettings
from triplicate.errors import ArgumentError
from triplicate.log.core.head import USER, Head, LogSegment, Owner, Page, PageReference, Purpose, SegmentState, reference_to

RECENT_LIMIT = 48
RECENT_KEPT = 16
PAGE_SEGMENTS = 64
REFERENCES_LIMIT = 48
REFERENCES_FOLDED = 32


@dataclass(frozen=True, slots=True)
class PageLimits:
    """How many segments and references a node lists before the oldest move to pages. Heads of different limits are compatible; smaller
    limits are for tests."""

    recent: int = RECENT_LIMIT
    recent_kept: int = RECENT_KEPT
    page_segments: int = PAGE_SEGMENTS
    references: int = REFERENCES_LIMIT
    references_folded: int = REFERENCES_FOLDED


DEFAULT_LIMITS = PageLimits()


@dataclass(frozen=True, slots=True)
class Change:
    """A head to write, after its new pages; a page never refers to one that comes later.

    Args:
        listed: ledgers that the log did not list before; the change fails if one of them is gone.
        replaced: numbers of the pages to which the new head no longer refers; they are deleted after the change.
    """

    head: Head
    pages: tuple[Page, ...] = ()
    listed: tuple[int, ...] = ()
    replaced: tuple[int, ...] = ()


def new_head(
    log_id: str,
    token: str,
    settings: LogSettings,
    created_ms: int,
    purpose: Purpose = USER,
    key_id: str = "",
    *,
    first_offset: int = 0,
    epoch: int = 0,
) -> Head:
    """The head of a log that has just been created: no segment, no writer yet.

    Args:
        first_offset: of its first record. epoch: its first writer has the next one.
    """
    return Head(log_id, epoch, token, None, first_offset, None, (), (), settings, created_ms, purpose=purpose, key_id=key_id)


def rotate_key(head: Head, key_id: str, token: str) -> Change:
    """The writer encrypts under another key from its next segment on.

    Raises:
        ArgumentError: the log is not encrypted.
    """
    if not head.key_id:
        raise ArgumentError(
            "the log is not encrypted: that is decided when a log is created (`triplicate log create --key`), since the records that it "
            "has would stay in plain text"
        )
    return Change(replace(head, key_id=key_id, token=token))


def take_over(
    head: Head, closed: LogSegment | None, opened: LogSegment | None, owner: Owner, token: str, limits: PageLimits = DEFAULT_LIMITS
) -> Change:
    """A new epoch: the open segment, recovered and counted, is closed, and the next is opened (or none, before publishing).

    Args:
        token: a name that no other change has. Two attempts of one owner list different segments, so each has a token of its own.

    Raises:
        ArgumentError: the segments do not continue the head they are made for.
    """
    changed = _close(head, closed)
    changed = replace(changed, epoch=head.epoch + 1, token=token, owner=owner)
    return _spill(head, _open(changed, opened), limits)


def roll(
    head: Head,
    closed: LogSegment,
    opened: LogSegment | None,
    token: str,
    limits: PageLimits = DEFAULT_LIMITS,
    published: Sequence[LogSegment] = (),
) -> Change:
    """The same writer closes its segment and opens the next, or none when it leaves.

    Args:
        published: sealed ledgers that become segments between the two; their first offsets are assigned here, in the order given.

    Raises:
        ArgumentError: the segments do not continue the head they are made for, or one of those published is open or empty.
    """
    return _spill(head, _open(_append(replace(_close(head, closed), token=token), published), opened), limits)


def publish(head: Head, segments: Sequence[LogSegment], token: str, limits: PageLimits = DEFAULT_LIMITS) -> Change:
    """Sealed ledgers become segments; their first offsets are assigned here, in the order given. Without segments only the token changes.

    Raises:
        ArgumentError: a segment is open, in the log or among those given.
    """
    if head.open is not None and segments:
        raise ArgumentError(f"ledger {head.open.ledger_id} is open: publishing needs a log without an open segment")
    return _spill(head, _append(replace(head, token=token), segments), limits)


def _append(head: Head, segments: Sequence[LogSegment]) -> Head:
    """Sealed ledgers become the last segments of a head that has no open one."""
    offset = head.closed_end
    added: list[LogSegment] = []
    for segment in segments:
        if segment.state is not SegmentState.CLOSED or segment.records <= 0:
            raise ArgumentError(
                f"ledger {segment.ledger_id} is {segment.state.value} with {segment.records} records and cannot be published"
            )
        added.append(replace(segment, first_offset=offset))
        offset += segment.records
    return replace(head, recent=head.recent + tuple(added))


def truncate(head: Head, offset: int, pages: Mapping[int, Page], token: str) -> Change:
    """Raise the first offset; segments that lie wholly before it are marked for deletion.

    Args:
        offset: at most the end of what may be read; the caller has checked that.
        pages: at least the pages beneath references that begin before the offset.
    """
    first = max(head.first_offset, offset)

    def mark(segment: LogSegment) -> LogSegment:
        return segment if segment.end_offset > first else replace(segment, state=SegmentState.DELETING)

    return rewrite(replace(head, first_offset=first, token=token), pages, mark, lambda reference: reference.first_offset < first)


def remove(head: Head, ledger_ids: frozenset[int], pages: Mapping[int, Page], token: str) -> Change:
    """Drop segments whose ledgers have been deleted.

    Args:
        ledger_ids: of segments marked for deletion; others are kept.
        pages: at least the pages that list them.
    """

    def drop(segment: LogSegment) -> LogSegment | None:
        return None if segment.state is SegmentState.DELETING and segment.ledger_id in ledger_ids else segment

    # A log without segments still has its end, since truncation has raised its first offset so far. Its next writer also needs the latest
    # wall time.
    return rewrite(replace(head, token=token, past_time_us=head.last_time_us), pages, drop, lambda reference: reference.page in pages)


def segments_within(head: Head, pages: Mapping[int, Page], first: int, end: int) -> list[LogSegment]:
    """Closed segments whose records lie from `first` to `end` (exclusive), oldest first, with the empty ones between them.

    Args:
        pages: at least the pages beneath references that overlap these offsets.
    """
    found: list[LogSegment] = []

    def collect(references: Sequence[PageReference]) -> None:
        for reference in references:
            if reference.end_offset > first and reference.first_offset < end:
                page = pages[reference.page]
                found.extend(page.segments)
                collect(page.references)

    collect(head.pages)
    inside = [segment for segment in (*found, *head.recent) if segment.first_offset >= first and segment.end_offset <= end]
    held = [place for place, segment in enumerate(inside) if segment.records]
    return inside[held[0] : held[-1] + 1] if held else []


def replace_run(head: Head, pages: Mapping[int, Page], run: Sequence[LogSegment], segment: LogSegment, token: str) -> Change:
    """Replace a run of neighbouring closed segments by one segment that holds their records.

    Args:
        pages: at least the pages beneath references that overlap the run.

    Raises:
        ArgumentError: the head does not list exactly this run, not all of it is closed, or the segment does not hold its records.
    """
    first, end = run[0].first_offset, run[-1].end_offset
    if segments_within(head, pages, first, end) != list(run) or any(item.state is not SegmentState.CLOSED for item in run):
        raise ArgumentError(f"the log does not list ledgers {[item.ledger_id for item in run]} as closed from {first} to {end}")
    if (segment.first_offset, segment.end_offset, segment.state) != (first, end, SegmentState.CLOSED):
        raise ArgumentError(f"ledger {segment.ledger_id} from {segment.first_offset} to {segment.end_offset} is not {first} to {end}")
    replaced = frozenset(item.ledger_id for item in run[:-1])

    def edit(item: LogSegment) -> LogSegment | None:
        if item.ledger_id == run[-1].ledger_id:
            return segment
        return None if item.ledger_id in replaced else item

    return rewrite(replace(head, token=token), pages, edit, lambda reference: reference.end_offset > first and reference.first_offset < end)


def mark_deleted(head: Head, token: str) -> Change:
    """Mark the log as deleted. The epoch is raised, so that a writer finds itself fenced."""
    return Change(replace(head, deleted=True, epoch=head.epoch + 1, owner=None, token=token))


def rewrite(
    head: Head, pages: Mapping[int, Page], edit: Callable[[LogSegment], LogSegment | None], touches: Callable[[PageReference], bool]
) -> Change:
    """Apply `edit` to every closed segment, within pages only beneath references that `touches` picks; None drops a segment.

    Pages whose content changes are replaced by new ones; all others are kept. The open segment is not edited.
    """
    new: list[Page] = []
    listed: list[int] = []
    replaced: list[int] = []

    def edit_all(segments: Sequence[LogSegment]) -> tuple[LogSegment, ...]:
        results = [(segment, edit(segment)) for segment in segments]
        listed.extend(new.ledger_id for old, new in results if new is not None and new.ledger_id != old.ledger_id)
        return tuple(new for _, new in results if new is not None)

    def edited(reference: PageReference) -> PageReference | None:
        if not touches(reference):
            return reference
        page = pages[reference.page]
        if page.level == 0:
            changed = replace(page, segments=edit_all(page.segments))
        else:
            changed = replace(page, references=tuple(kept for kept in map(edited, page.references) if kept is not None))
        if changed == page:
            return reference
        replaced.append(reference.page)
        if not changed.segments and not changed.references:
            return None
        new.append(changed)
        return reference_to(changed, -len(new))

    references = tuple(kept for kept in map(edited, head.pages) if kept is not None)
    recent = edit_all(head.recent)
    return Change(replace(head, pages=references, recent=recent), tuple(new), tuple(listed), tuple(replaced))


def measured(head: Head, sizes: Mapping[int, int], token: str) -> Change:
    """Put the sizes of pages, by number, into references that earlier releases wrote without sizes."""
    references = tuple(
        replace(item, size_bytes=sizes[item.page]) if item.size_bytes is None and item.page in sizes else item for item in head.pages
    )
    return Change(replace(head, pages=references, token=token))


def numbered(change: Change, numbers: Sequence[int], place: int) -> Page:
    """The page at a place of a change, with the numbers of the pages written before it put in."""
    page = change.pages[place]
    return replace(page, references=_with_numbers(page.references, numbers))


def numbered_head(change: Change, numbers: Sequence[int]) -> Head:
    """The head of a change whose pages have all been written, with their numbers put in."""
    return replace(change.head, pages=_with_numbers(change.head.pages, numbers))


def _with_numbers(references: tuple[PageReference, ...], numbers: Sequence[int]) -> tuple[PageReference, ...]:
    return tuple(replace(item, page=numbers[-item.page - 1]) if item.page < 0 else item for item in references)


def _close(head: Head, closed: LogSegment | None) -> Head:
    if head.open is None:
        if closed is not None:
            raise ArgumentError(f"ledger {closed.ledger_id} cannot be closed: the log has no open segment")
        return head
    if closed is None or (closed.ledger_id, closed.first_offset) != (head.open.ledger_id, head.open.first_offset):
        raise ArgumentError(f"ledger {head.open.ledger_id} is the open segment and must be closed, not {closed}")
    if closed.state is SegmentState.OPEN:
        raise ArgumentError(f"ledger {closed.ledger_id} is still open")
    return replace(head, open=None, recent=(*head.recent, closed))


def _open(head: Head, opened: LogSegment | None) -> Head:
    if opened is None:
        return head
    if opened.state is not SegmentState.OPEN or opened.first_offset != head.closed_end:
        raise ArgumentError(f"a segment from {opened.first_offset} does not continue a log that ends at {head.closed_end}")
    return replace(head, open=opened)


def _spill(before: Head, head: Head, limits: PageLimits) -> Change:
    """The change from one head to another: the oldest segments move to pages, and the oldest references to pages above, where there are
    too many."""
    known = {segment.ledger_id for segment in _segments_in(before)}
    listed = tuple(segment.ledger_id for segment in _segments_in(head) if segment.ledger_id not in known)
    pages: list[Page] = []
    recent, references = head.recent, list(head.pages)
    if len(recent) > limits.recent:
        moved, recent = recent[: -limits.recent_kept], recent[-limits.recent_kept :]
        for start in range(0, len(moved), limits.page_segments):
            pages.append(Page(0, segments=moved[start : start + limits.page_segments]))
            references.append(reference_to(pages[-1], -len(pages)))
    level = 0
    while any(reference.level >= level for reference in references):
        # The references of one level are adjacent, and those of higher levels precede them.
        start = next((place for place, item in enumerate(references) if item.level == level), 0)
        while sum(item.level == level for item in references) > limits.references:
            pages.append(Page(level + 1, references=tuple(references[start : start + limits.references_folded])))
            references[start : start + limits.references_folded] = [reference_to(pages[-1], -len(pages))]
            start += 1
        level += 1
    return Change(replace(head, recent=recent, pages=tuple(references)), tuple(pages), listed)


def _segments_in(head: Head) -> tuple[LogSegment, ...]:
    return head.recent if head.open is None else (*head.recent, head.open)


def all_segments(head: Head, pages: Mapping[int, Page]) -> Iterator[LogSegment]:
    """Every closed segment, oldest first, then the open one. `pages` must hold every page."""
    yield from _beneath(head.pages, pages)
    yield from head.recent
    if head.open is not None:
        yield head.open


def _beneath(references: Sequence[PageReference], pages: Mapping[int, Page]) -> Iterator[LogSegment]:
    for reference in references:
        page = pages[reference.page]
        yield from page.segments
        yield from _beneath(page.references, pages)
