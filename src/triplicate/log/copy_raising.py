"""Raises the copies of the segments of all logs, for clusters without a database node whose janitor does it."""

from __future__ import annotations

from triplicate.errors import CorruptionError, FormatError, LedgerError, LogError, NoSuchLog
from triplicate.log.logs import Logs

RUNS_MAX = 16
"""Segments of one log that one call rewrites."""


async def raise_all_copies(logs: Logs) -> int:
    """Rewrite closed segments that were written with fewer copies, a bounded number of each log, at the logs' limited rate.

    Concurrent calls of several processes do no harm. A log that fails is traced and left to the next call.

    Returns:
        The number of segments rewritten.

    Raises:
        MetadataError: the metadata store failed.
    """
    raised = 0
    for name in await logs.names():
        try:
            purpose = (await logs.head(name)).purpose
            raised += (await logs.acting_for(purpose).raise_copies(name, limit=RUNS_MAX)).segments
        except NoSuchLog:
            continue  # Deleted in the meantime.
        except (LogError, LedgerError, CorruptionError, FormatError) as error:
            logs.client.host.trace("log.copies_not_raised", log=name, error=repr(error))
    return raised
