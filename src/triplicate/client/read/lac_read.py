"""Reads of a ledger's last-add-confirmed from the bookies of its last ensemble.

`LacRead` and `ExplicitLacRead` conclude by the coverage rule (`ledger.LastConfirmed`), `TryLacRead` on the first greater value. None of
them fences. Source: BookKeeper `PendingReadLacOp`, `ReadLastConfirmedOp`, `TryReadLastConfirmedOp`.
"""

from __future__ import annotations

import asyncio

from triplicate.client.connection.response_errors import EXPLICIT_NEGATIVES, error_for_status
from triplicate.client.context import ClientContext
from triplicate.errors import BookieError, DigestMismatch, HandleClosed, ReadFailed, RequestTimeout, TriplicateError, Unauthorized
from triplicate.ledger import Entry, EntryCodec, LastConfirmed, LedgerMetadata
from triplicate.runtime import fail, resolve
from triplicate.wire import LAST_ENTRY, ReadLacRequest, ReadLacResponse, ReadResponse, Status

Token = tuple[int, str]
"""Position in the ensemble, and the bookie there."""


class LacRead:
    """Resolves to the greatest last-add-confirmed in any entry or explicit record, once the answers cover every write quorum.

    Asks over version 3, which alone has explicit records. A bookie that refuses that, or cannot be reached so, is asked for its last
    entry over the data channel instead; one that stays silent is not asked twice.
    Raises (through the future) ReadFailed when coverage cannot be reached, naming the bookies that are unknown, and Unauthorized.
    """

    def __init__(self, context: ClientContext, metadata: LedgerMetadata, codec: EntryCodec) -> None:
        self.future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.explicit = -1
        """The greatest last-add-confirmed in an explicit record."""
        self.newest: Entry | None = None
        """The entry with the greatest id in any answer, confirmed or not."""
        self._context = context
        self._codec = codec
        ensemble = metadata.last_segment.ensemble
        self._answers = LastConfirmed(ensemble, metadata.write_quorum, metadata.ack_quorum)
        # Every entry before the last segment is confirmed; otherwise the segment could not exist.
        self._floor = metadata.last_segment.first_entry_id - 1
        for position, bookie_id in enumerate(ensemble):
            context.pool.v3_channel(bookie_id).call(ReadLacRequest(codec.ledger_id), self._answered, (position, bookie_id))

    def _answered(self, token: Token, response: ReadLacResponse | None, error: BookieError | None) -> None:
        if self.future.done():
            return
        if response is None:
            if isinstance(error, RequestTimeout):
                self._answers.failed(token[0], str(error))
            else:
                self._read_last_entry(token, str(error))
        else:
            self._process(token, response)
        self._conclude()

    def _process(self, token: Token, response: ReadLacResponse) -> None:
        position, bookie_id = token
        # BookKeeper's bookie sends a signed record beside an I/O error when it holds no entry of the ledger.
        has_record = response.lac_body is not None and self._process_record(bookie_id, response.lac_body)
        if self._is_sufficient(response, has_record):
            self._answers.nothing_there(position)
        elif response.status is Status.OK and response.last_entry_body is not None:
            self._process_entry(token, response.last_entry_body)
        else:
            refusal = error_for_status(response.status, bookie_id, self._codec.ledger_id, "read of the last-add-confirmed")
            if isinstance(refusal, Unauthorized):
                self._fail(refusal)
            else:
                self._read_last_entry(token, str(refusal))

    def _is_sufficient(self, response: ReadLacResponse, has_record: bool) -> bool:
        """Whether the answer is complete without an entry."""
        return response.status in EXPLICIT_NEGATIVES or (response.status is Status.OK and has_record and response.last_entry_body is None)

    def _process_record(self, bookie_id: str, record: bytes) -> bool:
        try:
            self.explicit = max(self.explicit, self._codec.decode_lac(record))
        except DigestMismatch:
            self._context.metrics.digest_mismatches.labels(bookie=bookie_id).inc()
            return False
        return True

    def _process_entry(self, token: Token, body: bytes) -> None:
        position, bookie_id = token
        try:
            entry = self._codec.decode(body)
        except DigestMismatch as mismatch:
            self._context.metrics.digest_mismatches.labels(bookie=bookie_id).inc()
            self._answers.failed(position, str(mismatch))
        else:
            if self.newest is None or entry.entry_id > self.newest.entry_id:
                self.newest = entry
            self._answers.answered(position, entry.entry_id, entry.last_add_confirmed, entry.length)

    def _read_last_entry(self, token: Token, reason: str) -> None:
        """Read the last entry, which every bookie supports."""
        try:
            self._context.pool.channel(token[1]).read(self._codec.ledger_id, LAST_ENTRY, self._last_entry, token)
        except HandleClosed:
            self._answers.failed(token[0], reason)

    def _last_entry(self, token: Token, response: ReadResponse | None, error: BookieError | None) -> None:
        if self.future.done():
            return
        if response is None:
            self._answers.failed(token[0], str(error))
        elif response.status is Status.OK and response.body is not None:
            self._process_entry(token, response.body)
        elif response.status in EXPLICIT_NEGATIVES:
            self._answers.nothing_there(token[0])
        else:
            refusal = error_for_status(response.status, token[1], self._codec.ledger_id, "read of the last entry")
            if isinstance(refusal, Unauthorized):
                self._fail(refusal)
            self._answers.failed(token[0], str(refusal))
        self._conclude()

    def _conclude(self) -> None:
        if self.future.done():
            return
        if self._answers.is_covered:
            resolve(self.future, max(self._answers.last_add_confirmed, self.explicit, self._floor))
        elif self._answers.is_exhausted:
            self._fail(
                ReadFailed(
                    f"the last-add-confirmed of ledger {self._codec.ledger_id} cannot be determined: too many bookies are unknown, "
                    f"namely {self._answers.missing()}"
                )
            )

    def _fail(self, error: TriplicateError) -> None:
        if isinstance(error, ReadFailed):
            error.ledger_id = self._codec.ledger_id
        fail(self.future, error)


class ExplicitLacRead(LacRead):
    """`LacRead` of explicit records alone: when the future resolves, `explicit` has their greatest last-add-confirmed, -1 for none.

    Entries do not count, so a bookie that does not support the request over version 3 stays unknown.
    """

    def _is_sufficient(self, response: ReadLacResponse, has_record: bool) -> bool:
        has_none = response.status is Status.OK and response.lac_body is None
        return has_record or has_none or response.status in EXPLICIT_NEGATIVES

    def _process_entry(self, token: Token, body: bytes) -> None:
        self._answers.failed(token[0], "its explicit record is damaged")

    def _read_last_entry(self, token: Token, reason: str) -> None:
        self._answers.failed(token[0], reason)


class TryLacRead:
    """Resolves with the first answer that exceeds `known`, or to `known` when every bookie answered or failed.

    Raises (through the future) ReadFailed when no answer was usable, and Unauthorized.
    """

    def __init__(self, context: ClientContext, metadata: LedgerMetadata, codec: EntryCodec, known: int) -> None:
        self.future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._context = context
        self._codec = codec
        self._known = known
        self._useful = 0
        self._failures: dict[str, str] = {}
        ensemble = metadata.last_segment.ensemble
        self._waiting = len(ensemble)
        for bookie_id in ensemble:
            context.pool.channel(bookie_id).read(codec.ledger_id, LAST_ENTRY, self._answered, bookie_id)

    def _answered(self, bookie_id: str, response: ReadResponse | None, error: BookieError | None) -> None:
        self._waiting -= 1
        if self.future.done():
            return
        try:
            found = self._process(bookie_id, response, error)
        except Unauthorized as refusal:
            fail(self.future, refusal)
            return
        except TriplicateError as failure:
            self._failures[bookie_id] = str(failure)
        else:
            self._useful += 1
            if found > self._known:
                resolve(self.future, found)
                return
        if not self._waiting:
            self._conclude()

    def _process(self, bookie_id: str, response: ReadResponse | None, error: BookieError | None) -> int:
        if response is None:
            assert error is not None, "a request without an answer has an error"
            raise error
        if response.status is Status.OK and response.body is not None:
            try:
                return self._codec.decode(response.body).last_add_confirmed
            except DigestMismatch:
                self._context.metrics.digest_mismatches.labels(bookie=bookie_id).inc()
                raise
        if response.status in EXPLICIT_NEGATIVES:
            return -1
        raise error_for_status(response.status, bookie_id, self._codec.ledger_id, "read of the last entry")

    def _conclude(self) -> None:
        if self._useful:
            resolve(self.future, self._known)
            return
        said = ", ".join(f"{bookie_id} ({reason})" for bookie_id, reason in self._failures.items())
        failure = ReadFailed(f"no bookie could be asked for the last-add-confirmed of ledger {self._codec.ledger_id}: {said}")
        failure.ledger_id = self._codec.ledger_id
        fail(self.future, failure)
