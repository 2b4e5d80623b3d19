"""Changes of a ledger's metadata while the store may be away and others may change it too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from triplicate.client.context import ClientContext
from triplicate.errors import BadVersion, ConnectionLost, OutcomeUnknown
from triplicate.ledger import LedgerMetadata
from triplicate.metadata import Versioned
from triplicate.runtime import Backoff, sleep_until

Result = TypeVar("Result")

FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 1.0


class MetadataRetry:
    """Asks the metadata store again while it is away, up to one deadline for the whole operation.

    Args:
        ledger_id: None where there is no ledger yet whose outcome could be in doubt; then the end is a ConnectionLost.
        purpose: what the operation is, for the error message; for example ``the change of ensemble of ledger 7``.
    """

    def __init__(self, context: ClientContext, ledger_id: int | None, purpose: str) -> None:
        self._context = context
        self._ledger_id = ledger_id
        self._purpose = purpose
        self._clock = context.host.clock
        self._timeout_s = context.settings.metadata_timeout_s
        self._deadline = self._clock.monotonic() + self._timeout_s
        self._backoff = Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S, context.host.entropy.stream("metadata retries"))

    async def read(self, operation: Callable[[], Awaitable[Result]]) -> Result:
        """Run something that may be repeated freely until the store answers.

        Raises:
            OutcomeUnknown, ConnectionLost: the store stayed away until the deadline.
        """
        while True:
            try:
                return await operation()
            except ConnectionLost as error:
                await self.pause(error)

    async def pause(self, cause: Exception) -> None:
        """Wait a little before the next attempt.

        Raises:
            OutcomeUnknown, ConnectionLost: the deadline is reached; `cause` says why nothing worked.
        """
        now = self._clock.monotonic()
        if now >= self._deadline:
            text = f"the metadata could not be reached within {self._timeout_s:g} s for {self._purpose}: {cause}"
            if self._ledger_id is None:
                raise ConnectionLost(f"{text}; try again when the store is back") from cause
            error = OutcomeUnknown(text)
            error.ledger_id = self._ledger_id
            raise error from cause
        await sleep_until(self._clock, min(now + self._backoff.next_s(), self._deadline))

    async def swap(
        self, current: Versioned, propose: Callable[[LedgerMetadata], LedgerMetadata], settled: Callable[[Versioned], Versioned | None]
    ) -> Versioned:
        """Change the metadata by compare-and-set until it is changed or `settled` decides otherwise.

        After a conflict, and after a connection lost in mid-change (which may have been applied or not), the metadata is read
        again and `settled` looks at it.

        Args:
            propose: the new metadata from what is there. It must not fail on metadata that `settled` let pass.
            settled: what is to be returned because nothing more needs doing; None to try again on what was found; or it raises.

        Raises:
            OutcomeUnknown: the store stayed away until the deadline. NoSuchLedger: the ledger was deleted.
        """
        assert self._ledger_id is not None, "only a ledger that is there can change"
        ledger_id, ledgers = self._ledger_id, self._context.metadata.ledgers
        while True:
            try:
                return await ledgers.update(ledger_id, propose(current.value), current.version)
            except BadVersion as error:
                lost: Exception = error
            except ConnectionLost as error:
                lost = error
                await self.pause(error)
            found = await self.read(lambda: ledgers.get(ledger_id))
            done = settled(found)
            if done is not None:
                return done
            if found.version == current.version and isinstance(lost, BadVersion):
                await self.pause(lost)
            current = found
