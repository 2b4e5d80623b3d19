"""The lists of entries of bookies, and the verdict by them: whether the copies of a bookie are needed."""

from __future__ import annotations

from triplicate.autorecovery.core.ledger_copies import BookieAnswer
from triplicate.autorecovery.core.needed_copies import LackingBookie, lacking_bookies
from triplicate.client import BookieCopies
from triplicate.errors import BookieError, ProtocolError, Unauthorized
from triplicate.ledger import Availability, LedgerMetadata


async def listed(copies: BookieCopies, ledger_id: int, bookie_id: str) -> BookieAnswer:
    """The list of a bookie, or why it gave none."""
    try:
        return BookieAnswer(await copies.listed(ledger_id, bookie_id))
    except (BookieError, ProtocolError, Unauthorized) as error:
        return BookieAnswer(silence=" ".join(str(error).split()))


async def lacking_by_lists(
    copies: BookieCopies, ledger_id: int, metadata: LedgerMetadata, stored: Availability
) -> tuple[LackingBookie, ...]:
    """The bookies that the metadata name, and that do not list an entry which another bookie has; none if its copies are not needed.

    Args:
        metadata: do not name the other bookie.
        stored: the entries that the other bookie lists.
    """
    names = dict.fromkeys(name for segment in metadata.segments for name in segment.ensemble)
    answers = {name: await listed(copies, ledger_id, name) for name in names}
    return lacking_bookies(metadata, stored, answers)
