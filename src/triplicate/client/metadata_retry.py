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
    """Repeats requests to the metadata store while it is away, up to one deadline for the whole operation.

    Args:
        ledger_id: None where no ledger exists yet whose outcome could be unknown; the error is then a ConnectionLost.
        purpose: describes the operation in the error message; for example ``the change of ensemble of ledger 7``.
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
        """Run an operation that may be repeated freely, until the store answers.

        Raises:
            OutcomeUnknown, ConnectionLost: the store stayed away until the deadline.
        """
        while True:
            try:
                return await operation()
            except ConnectionLost as error:
                await self.pause(error)

    async def pause(self, cause: Exception) -> None:
        """Wait before the next attempt, after a pause that grows.

        Raises:
            OutcomeUnknown, ConnectionLost: the deadline is reached; `cause` is the last failure.
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
        self, current: Versioned, propose: Callable[[LedgerMetadata], LedgerMetadata], judge: Callable[[Versioned], Versioned | None]
    ) -> Versioned:
        """Change the metadata by compare-and-set, until it is changed or `judge` decides otherwise.

        After a conflict, and after a connection lost during a change (which may have been applied or not), the metadata is read
        again and given to `judge`.

        Args:
            propose: makes the new metadata from the present. It must not fail on metadata for which `judge` returned None.
            judge: returns the result if nothing more needs to be done, or None to try again with the metadata found; or it raises.

        Raises:
            OutcomeUnknown: the store stayed away until the deadline. NoSuchLedger: the ledger was deleted.
        """
        assert self._ledger_id is not None, "only an existing ledger can change"
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
            result = judge(found)
            if result is not None:
                return result
            if found.version == current.version and isinstance(lost, BadVersion):
                await self.pause(lost)
            current = found
