"""When a read that is not answered is sent to another replica as well, and how often. Pure: the caller passes the times.

The delay is a quantile of the recent reads. It is computed for each bookie, and that of the bookie in the middle applies to all, so that
one slow bookie does not raise it. A budget limits the additional reads to a share of all reads.
"""

from __future__ import annotations

from enum import IntEnum

from triplicate.ledger.read_latency import RecentLatencies

SHORT_BATCH_ENTRIES = 32
"""A batch read for up to this number of entries is short."""
READS_NEEDED = 16
"""A bookie's latencies count after this number of reads."""
REFRESH_READS = 32
"""A delay is computed again after this number of reads, times the number of bookies."""
LEAST_DELAY_S = 0.002
"""Shorter delays are usually pauses of the client's own event loop, in seconds."""
BURST_READS = 10.0
"""Most additional reads that the budget saves up while none is needed."""
BOOKIES_MAXIMUM = 256
"""Bookies whose latencies are kept."""


class ReadKind(IntEnum):
    """Requests whose latencies are comparable."""

    SINGLE = 0
    SHORT_BATCH = 1
    LONG_BATCH = 2


def kind_of_batch(entries: int) -> ReadKind:
    """The kind of a batch read for this number of entries."""
    return ReadKind.SHORT_BATCH if entries <= SHORT_BATCH_ENTRIES else ReadKind.LONG_BATCH


class HedgeBudget:
    """Additional reads that are allowed: a share of the reads, of which at most `BURST_READS` are saved up.

    In any span of time the additional reads are at most `share` of the reads in that span, and `BURST_READS` more.

    Args:
        share: additional reads per read.
    """

    __slots__ = ("_counted", "_share", "_tokens", "reads", "spent")

    def __init__(self, share: float) -> None:
        self.reads = 0
        """Reads so far without the additional ones; the caller counts."""
        self.spent = 0
        """Additional reads so far."""
        self._share = share
        self._tokens = BURST_READS if share > 0 else 0.0
        self._counted = 0

    def try_spend(self) -> bool:
        """Spend one additional read, if the budget has it."""
        self._earn()
        if self._tokens < 1:
            return False
        self._tokens -= 1
        self.spent += 1
        return True

    def spend(self) -> None:
        """Spend one additional read even if the budget does not have it; later ones pay for it."""
        self._earn()
        self._tokens = max(self._tokens - 1, -BURST_READS)
        self.spent += 1

    def _earn(self) -> None:
        self._tokens = min(BURST_READS, self._tokens + self._share * (self.reads - self._counted))
        self._counted = self.reads


class HedgeDelays:
    """The delay for each kind of read.

    Args:
        limit_s: longest delay, and the delay while too few reads were measured; infinite: never.
        quantile: of the recent reads; 0: always `limit_s`.
    """

    def __init__(self, limit_s: float, quantile: float) -> None:
        self.limit_s = limit_s
        self.is_measured = quantile > 0 and limit_s < float("inf")
        """Whether `record` has any effect."""
        self._quantile = quantile
        self._latencies: list[dict[str, RecentLatencies]] = [{} for _ in ReadKind]
        self._unseen = [REFRESH_READS for _ in ReadKind]
        self._delays_s = [limit_s for _ in ReadKind]

    def delay_s(self, kind: ReadKind) -> float:
        """Seconds without an answer after which another replica is read as well."""
        return self._delays_s[kind]

    def record(self, bookie_id: str, kind: ReadKind, latency_s: float) -> None:
        """Count a read that took this time, or was not answered for this time."""
        if not self.is_measured:
            return
        of_kind = self._latencies[kind]
        latencies = of_kind.get(bookie_id)
        if latencies is None:
            if len(of_kind) >= BOOKIES_MAXIMUM:
                del of_kind[next(iter(of_kind))]
            latencies = of_kind[bookie_id] = RecentLatencies()
        latencies.record(latency_s)
        self._unseen[kind] -= 1
        if self._unseen[kind] <= 0:
            self._refresh(kind)

    def _refresh(self, kind: ReadKind) -> None:
        of_kind = self._latencies[kind]
        self._unseen[kind] = REFRESH_READS * len(of_kind)
        known = sorted(latencies.quantile_s(self._quantile) for latencies in of_kind.values() if latencies.reads >= READS_NEEDED)
        if known:
            middle = known[(len(known) - 1) // 2]
            self._delays_s[kind] = min(self.limit_s, max(LEAST_DELAY_S, middle))
