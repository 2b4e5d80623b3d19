"""Learning that a ledger grew.

One bookie keeps a long poll and answers when its last-add-confirmed passes what the reader knows, mostly with the very entry. A bookie
that is slow or lost would keep the news to itself, so another one is asked at growing intervals as well; where no bookie keeps polls,
these questions are all there is, and come more often. Whatever a bookie says of the last-add-confirmed is what the writer once said, so
one answer is enough. Source: BookKeeper `ReadLastConfirmedAndEntryOp`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from triplicate.client.connection.response_errors import EXPLICIT_NEGATIVES
from triplicate.client.context import ClientContext
from triplicate.errors import BookieError, DigestMismatch, HandleClosed, RequestTimeout
from triplicate.ledger import Entry, EntryCodec
from triplicate.wire import LAST_ENTRY, ReadRequest, ReadResponse, Status

if TYPE_CHECKING:
    from triplicate.client.read.ledger_reader import LedgerReader

WAIT_SHARE = 0.6
"""How much of the read time-out a long poll may take: the rest is for the way and for a bookie that answers late."""

EARLY_SHARE = 0.5
"""An answer without news before so much of the wait is over was not waited for, and is not asked for again at once."""


class _Poll(NamedTuple):
    bookie_id: str
    entry_id: int
    """What was not confirmed yet when it was sent."""
    sent_at: float
    wait_s: float


class LongPoller:
    """What one tail, or one wait for an entry, has out at the bookies. At most one poll waits for news, and no bookie owes two answers."""

    def __init__(self, context: ClientContext, reader: LedgerReader, codec: EntryCodec, longest_wait_s: float | None = None) -> None:
        """
        Args:
            longest_wait_s: of a poll; None takes what the settings allow.
        """
        self.answers = 0
        """How many bookies said something usable, be it that there is nothing new."""
        self.failure = ""
        """What the last one that failed said."""
        self._context = context
        self._settings = context.settings
        self._clock = context.host.clock
        self._reader = reader
        self._codec = codec
        self._wait_s = min(self._settings.long_poll_wait_s, WAIT_SHARE * self._settings.read_timeout_s)
        if longest_wait_s is not None:
            self._wait_s = min(self._wait_s, max(longest_wait_s, 0.001))
        self._turn = context.host.entropy.stream("tail").randrange(1 << 16)
        self._owing: dict[str, None] = {}
        self._parked: _Poll | None = None
        self._no_polls_until: dict[str, float] = {}
        self._knew_nothing: dict[str, None] = {}
        """Bookies that answered a poll at once, having nothing of the ledger; no more polls to them until somebody has news."""
        self._pause_s = self._settings.tail_wait_minimum_s
        self._entry_id = -1
        self._entry: Entry | None = None
        self._wake: asyncio.Future[None] | None = None
        self._client_closed: HandleClosed | None = None

    def wake_up(self) -> None:
        """Let `wait` return."""
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def had_news(self) -> None:
        """The reader went on by itself: ask soon again."""
        self._pause_s = self._settings.tail_wait_minimum_s
        self._knew_nothing.clear()

    async def wait(self, entry_id: int, at_most_s: float | None = None) -> Entry | None:
        """Return when `entry_id` is confirmed, with the entry where a poll brought it; or None, when a pause is over or at a `wake_up`.

        Args:
            entry_id: the first that is not known to be confirmed.

        Raises:
            HandleClosed: the client was closed.
        """
        self._entry_id, self._entry = entry_id, None
        self._wake = asyncio.get_running_loop().create_future()
        is_waited_for = self._settings.long_poll and self._park()
        pause_s = self._pause_s
        if is_waited_for:
            pause_s = max(pause_s, min(self._settings.tail_wait_maximum_s, self._wait_s))
        now = self._clock.monotonic()
        timer = self._clock.call_at(now + (pause_s if at_most_s is None else min(pause_s, at_most_s)), self._pause_over)
        try:
            if not is_waited_for:
                self._ask()
            await self._wake
        finally:
            timer.cancel()
        if self._client_closed is not None:
            raise self._client_closed
        entry, self._entry = self._entry, None
        if self._reader.last_add_confirmed >= entry_id:
            self.had_news()
        else:
            longest = self._wait_s if self._parked is not None else self._settings.tail_wait_maximum_s
            self._pause_s = min(2 * pause_s, max(longest, self._settings.tail_wait_minimum_s))
        return entry

    def _pause_over(self) -> None:
        if self._parked is not None:
            self._ask()
        self.wake_up()

    # Polls.

    def _park(self) -> bool:
        """Leave a poll with a bookie; whether one waits now for the entry that is wanted."""
        parked = self._parked
        metadata = self._reader.metadata
        ensemble = metadata.last_segment.ensemble
        if parked is not None and parked.entry_id == self._entry_id and parked.bookie_id in ensemble:
            return True
        # A poll for an earlier entry tells of a bookie that is behind the others; it answers some day, and so does one that was replaced.
        self._parked = None
        now = self._clock.monotonic()
        if metadata.write_quorum < len(ensemble):
            # The news comes with a later entry, and the bookies of the next one hold this one too, but for a write quorum of one.
            self._turn = self._entry_id + 1
        for step in range(len(ensemble)):
            bookie_id = ensemble[(self._turn + step) % len(ensemble)]
            if bookie_id in self._owing or bookie_id in self._knew_nothing or self._no_polls_until.get(bookie_id, now) > now:
                continue
            self._turn += step
            poll = _Poll(bookie_id, self._entry_id, now, self._wait_s)
            wait_ms = max(1, int(1000 * self._wait_s))
            request = ReadRequest(self._codec.ledger_id, LAST_ENTRY, previous_lac=self._entry_id - 1, timeout_ms=wait_ms, piggyback=True)
            self._context.pool.v3_channel(bookie_id).call(request, self._polled, poll)
            self._owing[bookie_id] = None
            self._parked = poll
            return True
        return False

    def _polled(self, poll: _Poll, response: ReadResponse | None, error: BookieError | None) -> None:
        self._owing.pop(poll.bookie_id, None)
        if self._parked is poll:
            self._parked = None
        now = self._clock.monotonic()
        if response is not None and (response.status is Status.OK or response.status in EXPLICIT_NEGATIVES):
            self.answers += 1
            self._take_news(poll, response)
            early = now - poll.sent_at < EARLY_SHARE * poll.wait_s
            if early and self._reader.last_add_confirmed < poll.entry_id:
                # It does not wait: it knows nothing of the ledger, or was woken by something else than an entry.
                self._knew_nothing[poll.bookie_id] = None
                self._turn += 1
        else:
            # Not heard, not understood, or not willing: no more polls for a while. A lost connection may be all that an old bookie says.
            self.failure = f"{poll.bookie_id}: {response.status.name if response is not None else error}"
            rest_s = 0.0 if isinstance(error, RequestTimeout) else self._settings.suspect_s
            self._no_polls_until[poll.bookie_id] = now + max(rest_s, self._settings.tail_wait_maximum_s)
            self._turn += 1
        if self._reader.last_add_confirmed >= self._entry_id or self._parked is None:
            self.wake_up()

    def _take_news(self, poll: _Poll, response: ReadResponse) -> None:
        max_lac = -1 if response.max_lac is None else response.max_lac
        if response.body is None:
            self._reader.learn(max_lac)
            return
        entry = self._decode(poll.bookie_id, response.body)
        if entry is None:
            return  # The bookie may have its number from the same damaged bytes.
        self._reader.learn(max(entry.last_add_confirmed, max_lac))
        if entry.entry_id == self._entry_id <= self._reader.last_add_confirmed:
            self._entry = entry

    # Questions.

    def _ask(self) -> None:
        """Ask the next bookie in turn that does not owe an answer for its last entry."""
        ensemble = self._reader.metadata.last_segment.ensemble
        for step in range(1, len(ensemble) + 1):
            bookie_id = ensemble[(self._turn + step) % len(ensemble)]
            if bookie_id not in self._owing:
                try:
                    self._context.pool.channel(bookie_id).read(self._codec.ledger_id, LAST_ENTRY, self._answered, bookie_id)
                except HandleClosed as closed:
                    self._client_closed = closed
                    self.wake_up()
                    return
                if self._parked is None:
                    self._turn += step
                self._owing[bookie_id] = None
                return

    def _answered(self, bookie_id: str, response: ReadResponse | None, error: BookieError | None) -> None:
        self._owing.pop(bookie_id, None)
        if response is not None and response.status is Status.OK and response.body is not None:
            entry = self._decode(bookie_id, response.body)
            if entry is not None:
                self.answers += 1
                self._reader.learn(max(entry.last_add_confirmed, -1 if response.max_lac is None else response.max_lac))
        elif response is not None and response.status in EXPLICIT_NEGATIVES:
            self.answers += 1
        else:
            self.failure = f"{bookie_id}: {response.status.name if response is not None else error}"
        if self._reader.last_add_confirmed >= self._entry_id:
            self.wake_up()

    def _decode(self, bookie_id: str, body: bytes) -> Entry | None:
        try:
            return self._codec.decode(body)
        except DigestMismatch:
            self._context.metrics.digest_mismatches.labels(bookie=bookie_id).inc()
            return None
