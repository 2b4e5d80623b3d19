"""Long polls: requests that a bookie answers when a ledger grows.

One bookie keeps a long poll and answers when its last-add-confirmed passes the one that the reader knows, usually with the entry itself. A
bookie that is slow or lost would delay the news, so another one is asked for its last entry as well, at growing intervals. Where no bookie
keeps polls, these reads are the only source of news, and are sent more often. Any last-add-confirmed that a bookie reports was once sent by
the writer, so one answer is enough. Source: BookKeeper `ReadLastConfirmedAndEntryOp`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from triplicate.client.connection.response_errors import EXPLICIT_NEGATIVES
from triplicate.client.context import ClientContext
from triplicate.errors import BookieError, DigestMismatch, HandleClosed, RequestTimeout
from triplicate.ledger import Entry, EntryCodec, LedgerMetadata
from triplicate.runtime import resolve
from triplicate.wire import LAST_ENTRY, ReadRequest, ReadResponse, Status

WAIT_SHARE = 0.6
"""Longest wait of a long poll, as a share of the read timeout; the rest is for the network and for a bookie that answers late."""

EARLY_SHARE = 0.5
"""An answer without news that comes before this share of the wait did not wait for news; that bookie is not polled again at once."""


class PolledLedger(Protocol):
    """The part of a reader that a poller uses."""

    @property
    def metadata(self) -> LedgerMetadata:
        """As last read."""

    @property
    def last_add_confirmed(self) -> int:
        """The greatest id known to be confirmed; -1 when there is none."""

    def learn(self, last_add_confirmed: int) -> None:
        """A bookie reported that the ledger is confirmed up to this id."""


class _Poll(NamedTuple):
    bookie_id: str
    entry_id: int
    """The first entry that was not known to be confirmed when the poll was sent."""
    sent_at: float
    wait_s: float


class LongPoller:
    """The polls and reads of one tail, or of one wait for an entry. At most one poll waits for news, and no bookie owes two answers."""

    def __init__(self, context: ClientContext, ledger: PolledLedger, codec: EntryCodec, longest_wait_s: float | None = None) -> None:
        """
        Args:
            longest_wait_s: longest wait of a poll, in seconds; None for the limit of the settings.
        """
        self.answers = 0
        """Usable answers so far, including those without news."""
        self.failure = ""
        """The last failure of a bookie, for a message."""
        self._context = context
        self._settings = context.settings
        self._clock = context.host.clock
        self._ledger = ledger
        self._codec = codec
        self._wait_s = min(self._settings.long_poll_wait_s, WAIT_SHARE * self._settings.read_timeout_s)
        if longest_wait_s is not None:
            self._wait_s = min(self._wait_s, max(longest_wait_s, 0.001))
        self._next_position = context.host.entropy.stream("tail").randrange(1 << 16)
        self._unanswered: dict[str, None] = {}
        self._poll: _Poll | None = None
        self._no_polls_before: dict[str, float] = {}
        self._without_news: dict[str, None] = {}
        """Bookies that answered a poll at once, since they hold nothing of the ledger; they are not polled again until there is news."""
        self._pause_s = self._settings.tail_wait_minimum_s
        self._entry_id = -1
        self._entry: Entry | None = None
        self._woken: asyncio.Future[None] | None = None
        self._client_closed: HandleClosed | None = None

    def wake(self) -> None:
        """Let `wait` return now."""
        if self._woken is not None:
            resolve(self._woken, None)

    def note_progress(self) -> None:
        """The reader made progress by other means: ask again soon."""
        self._pause_s = self._settings.tail_wait_minimum_s
        self._without_news.clear()

    async def wait(self, entry_id: int, at_most_s: float | None = None) -> Entry | None:
        """Wait until `entry_id` is confirmed; return the entry if a poll brought it. Returns None after a pause, or at a `wake`.

        Args:
            entry_id: the first entry that is not known to be confirmed.
            at_most_s: the longest wait, in seconds; None for the present pause.

        Raises:
            HandleClosed: the client was closed.
        """
        self._entry_id, self._entry = entry_id, None
        self._woken = asyncio.get_running_loop().create_future()
        is_waited_for = self._settings.long_poll and self._send_poll()
        pause_s = self._pause_s
        if is_waited_for:
            pause_s = max(pause_s, min(self._settings.tail_wait_maximum_s, self._wait_s))
        now = self._clock.monotonic()
        timer = self._clock.call_at(now + (pause_s if at_most_s is None else min(pause_s, at_most_s)), self._pause_over)
        try:
            if not is_waited_for:
                self._read_last_entry()
            await self._woken
        finally:
            timer.cancel()
        if self._client_closed is not None:
            raise self._client_closed
        entry, self._entry = self._entry, None
        if self._ledger.last_add_confirmed >= entry_id:
            self.note_progress()
        else:
            longest = self._wait_s if self._poll is not None else self._settings.tail_wait_maximum_s
            self._pause_s = min(2 * pause_s, max(longest, self._settings.tail_wait_minimum_s))
        return entry

    def _pause_over(self) -> None:
        if self._poll is not None:
            self._read_last_entry()
        self.wake()

    # Polls.

    def _send_poll(self) -> bool:
        """Send a long poll to a bookie, if none waits for the wanted entry. Returns whether one waits now."""
        current = self._poll
        metadata = self._ledger.metadata
        ensemble = metadata.last_segment.ensemble
        if current is not None and current.entry_id == self._entry_id and current.bookie_id in ensemble:
            return True
        # A poll for an earlier entry is at a bookie that is behind the others, or was replaced; it will be answered some time.
        self._poll = None
        now = self._clock.monotonic()
        if metadata.write_quorum < len(ensemble):
            # News comes with a later entry; the bookies of the next entry hold this one too, unless the write quorum is one.
            self._next_position = self._entry_id + 1
        for position in self._turns(ensemble, metadata.write_quorum):
            bookie_id = ensemble[position]
            if bookie_id in self._unanswered or bookie_id in self._without_news or self._no_polls_before.get(bookie_id, now) > now:
                continue
            self._next_position = position
            self._context.reads.note_sent(bookie_id)
            poll = _Poll(bookie_id, self._entry_id, now, self._wait_s)
            wait_ms = max(1, int(1000 * self._wait_s))
            request = ReadRequest(self._codec.ledger_id, LAST_ENTRY, previous_lac=self._entry_id - 1, timeout_ms=wait_ms, piggyback=True)
            self._context.pool.v3_channel(bookie_id).call(request, self._polled, poll)
            self._unanswered[bookie_id] = None
            self._poll = poll
            return True
        return False

    def _turns(self, ensemble: Sequence[str], write_quorum: int) -> list[int]:
        """The positions of the ensemble in the order in which they are polled: of those that get the news, near ones first."""
        self._context.near.refresh()
        size, order = len(ensemble), self._context.reads.order
        turns = [(self._next_position + step) % size for step in range(size)]
        if not order.has_distances:
            return turns
        informed = size if write_quorum == size else max(1, write_quorum - 1)
        return sorted(turns[:informed], key=lambda position: order.rank(ensemble[position])) + turns[informed:]

    def _polled(self, poll: _Poll, response: ReadResponse | None, error: BookieError | None) -> None:
        self._unanswered.pop(poll.bookie_id, None)
        if self._poll is poll:
            self._poll = None
        now = self._clock.monotonic()
        if response is not None and (response.status is Status.OK or response.status in EXPLICIT_NEGATIVES):
            self.answers += 1
            self._process_news(poll, response)
            early = now - poll.sent_at < EARLY_SHARE * poll.wait_s
            if early and self._ledger.last_add_confirmed < poll.entry_id:
                # The bookie does not wait: it knows nothing of the ledger, or something other than an entry woke it.
                self._without_news[poll.bookie_id] = None
                self._next_position += 1
        else:
            # No answer, an unknown one, or a refusal: send no polls for a while. An old bookie may just close the connection.
            self.failure = f"{poll.bookie_id}: {response.status.name if response is not None else error}"
            rest_s = 0.0 if isinstance(error, RequestTimeout) else self._settings.suspect_s
            self._no_polls_before[poll.bookie_id] = now + max(rest_s, self._settings.tail_wait_maximum_s)
            self._next_position += 1
        if self._ledger.last_add_confirmed >= self._entry_id or self._poll is None:
            self.wake()

    def _process_news(self, poll: _Poll, response: ReadResponse) -> None:
        max_lac = -1 if response.max_lac is None else response.max_lac
        if response.body is None:
            self._ledger.learn(max_lac)
            return
        entry = self._decode(poll.bookie_id, response.body)
        if entry is None:
            return  # The bookie may have taken its last-add-confirmed from the same damaged bytes.
        self._ledger.learn(max(entry.last_add_confirmed, max_lac))
        if entry.entry_id == self._entry_id <= self._ledger.last_add_confirmed:
            self._entry = entry

    # Reads of the last entry.

    def _read_last_entry(self) -> None:
        """Read the last entry of the next bookie in turn that does not owe an answer."""
        ensemble = self._ledger.metadata.last_segment.ensemble
        for step in range(1, len(ensemble) + 1):
            bookie_id = ensemble[(self._next_position + step) % len(ensemble)]
            if bookie_id not in self._unanswered:
                try:
                    self._context.pool.channel(bookie_id).read(self._codec.ledger_id, LAST_ENTRY, self._answered, bookie_id)
                except HandleClosed as closed:
                    self._client_closed = closed
                    self.wake()
                    return
                if self._poll is None:
                    self._next_position += step
                self._unanswered[bookie_id] = None
                return

    def _answered(self, bookie_id: str, response: ReadResponse | None, error: BookieError | None) -> None:
        self._unanswered.pop(bookie_id, None)
        if response is not None and response.status is Status.OK and response.body is not None:
            entry = self._decode(bookie_id, response.body)
            if entry is not None:
                self.answers += 1
                self._ledger.learn(max(entry.last_add_confirmed, -1 if response.max_lac is None else response.max_lac))
        elif response is not None and response.status in EXPLICIT_NEGATIVES:
            self.answers += 1
        else:
            self.failure = f"{bookie_id}: {response.status.name if response is not None else error}"
        if self._ledger.last_add_confirmed >= self._entry_id:
            self.wake()

    def _decode(self, bookie_id: str, body: bytes) -> Entry | None:
        try:
            return self._codec.decode(body)
        except DigestMismatch:
            self._context.metrics.digest_mismatches.labels(bookie=bookie_id).inc()
            return None
