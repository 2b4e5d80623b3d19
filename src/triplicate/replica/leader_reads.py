"""The reads of one leadership. Each is confirmed by the lease, or by an append that is sent after it (`core.read_confirmation`).

The appends of the leader pass through `send` and `acknowledge`. Where none is sent, `run` appends entries without records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from triplicate.replica.core.lease import wait_s
from triplicate.replica.core.read_confirmation import ReadConfirmation, SentAppend
from triplicate.runtime import Clock, fail, resolve, sleep

SentReads = SentAppend[asyncio.Future[None]]
"""An append on its way to the log, with the reads that its acknowledgement confirms."""


class LeaderReads:
    """The reads of one leadership, and its lease. `run` it while the leadership lasts, and `close` it then.

    Args:
        lease_s: see `core.lease`; 0 for none.
        append_noop: appends an entry without records, and returns when it is acknowledged.
        not_leading: makes the error of reads that nothing confirms any more.
    """

    def __init__(
        self, clock: Clock, lease_s: float, append_noop: Callable[[], Awaitable[None]], not_leading: Callable[[], Exception]
    ) -> None:
        self._clock = clock
        self._append_noop = append_noop
        self._not_leading = not_leading
        self._confirmation: ReadConfirmation[asyncio.Future[None]] = ReadConfirmation(lease_s)
        self._wanted = asyncio.Event()
        self._is_over = False
        self.sent_at = clock.elapsed()
        """When the last append was sent, or this began."""

    def is_confirmed(self) -> bool:
        """Whether what was read before the call may be answered now: no other node had acknowledged anything by then.

        The order matters: a process that is suspended after the read does not answer once its lease has ended.
        """
        if self._is_over or not self._confirmation.is_confirmed(self._clock.elapsed()):
            return False
        if self._confirmation.wants_append:
            self._wanted.set()
        return True

    async def confirm(self) -> None:
        """Return when what was read before the call may be answered.

        Raises:
            Exception: that of `not_leading`: this node has ceased to lead.
        """
        if not self.is_confirmed():
            await self.proof()

    def proof(self) -> asyncio.Future[None]:
        """A future of the acknowledgement of an append that is sent after this call: proof that this node led meanwhile. Raises as
        `confirm`.
        """
        if self._is_over:
            raise self._not_leading()
        proof: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._confirmation.wait(proof)
        self._wanted.set()
        return proof

    def age_s(self) -> float:
        """This node's state lacks nothing that was acknowledged anywhere longer ago than this, in seconds. Called on any thread."""
        return self._confirmation.age_s(self._clock.elapsed())

    # The appends.

    def send(self) -> SentReads:
        """An append is about to be sent to the log. It covers all reads that wait now, and none that come later."""
        self.sent_at = self._clock.elapsed()
        return self._confirmation.send(self.sent_at)

    def acknowledge(self, sent: SentReads) -> None:
        """The log has acknowledged an append, which extends the lease and confirms its reads."""
        for proof in self._confirmation.acknowledge(sent):
            resolve(proof, None)

    def refuse(self, sent: SentReads) -> None:
        """The log refused the append before it was sent: its reads wait for the next."""
        self._confirmation.refuse(sent)

    def fail(self, sent: SentReads) -> None:
        """The outcome of an append is open, which ends the leadership."""
        for proof in sent.reads:
            fail(proof, self._not_leading())

    async def noop(self) -> None:
        """Append an entry without records. Its acknowledgement extends the lease and confirms the reads that wait."""
        self.sent_at = self._clock.elapsed()
        sent = self._confirmation.send_noop(self.sent_at)
        try:
            await self._append_noop()
        except BaseException:
            self.fail(sent)
            raise
        self.acknowledge(sent)

    async def run(self) -> None:
        """Append no-ops for reads that wait and for the lease. Reads that come while one is on its way share the next, or an entry that
        is sent before it.
        """
        while True:
            while not self._confirmation.wants_append:
                self._wanted.clear()
                await self._wanted.wait()
            await self.noop()

    def close(self) -> None:
        """The leadership has ended: fail the reads that wait."""
        self._is_over = True
        for proof in self._confirmation.close():
            fail(proof, self._not_leading())


class LeaseSuccession:
    """The leaderships of one process, each of which outwaits the lease of the leader before it."""

    def __init__(self, clock: Clock, lease_s: float, clock_rate_error: float) -> None:
        self._clock = clock
        self._wait_s = wait_s(lease_s, clock_rate_error)
        self._led_epoch = 0
        """The last epoch that this process led. 0: epoch 0 of a log has no writer, so epoch 1 follows no leader."""

    async def outwait_predecessor(self, epoch: int, since: float) -> None:
        """Wait until no earlier leader answers reads under its lease. Their fencing was complete at `since`, or before."""
        if epoch == self._led_epoch + 1:
            return  # The previous leadership was of this process, which has ended it, or there was none.
        until = since + self._wait_s
        while (remaining_s := until - self._clock.elapsed()) > 0:
            await sleep(self._clock, remaining_s)

    def leads(self, epoch: int) -> None:
        """This process answers reads in an epoch from now on."""
        self._led_epoch = epoch
