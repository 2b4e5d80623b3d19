"""Hedged reads: additional reads stay within the client's budget, and each is counted once.

The checker keeps the budget itself, from the numbers of reads and of additional reads that the client had counted at each additional
read. Whether a hedged read delivers an entry twice, not at all, or a wrong one is judged by what readers get, as for every other read:
`acknowledged_is_readable` and `read_order_is_write_order`, and the tailers' and probers' own claims about the ids that they are given.
"""

from __future__ import annotations

from dataclasses import dataclass

from triplicate_simulator.checkers.history import History, Verdict

BURST_READS = 10.0
"""Additional reads that a client may save up, as the setting `client.hedge_read_share` promises."""
LATE = "late"
"""The reason of a read that only the budget allows. One after a bookie's silence, or a probe, is paid for by later ones."""
ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Hedged:
    """One additional read.

    Args:
        client: its node and version of the protocol. At any time a node has one reading client for each version.
        reads, spent: what the client has counted by then: reads without the additional ones, and additional ones with this one.
        share: additional reads per read that its settings allow.
    """

    time_s: float
    client: str
    reason: str
    reads: int
    spent: int
    share: float


class _Budget:
    """The budget of one client, and what the client had counted at its last additional read."""

    def __init__(self, share: float) -> None:
        self.reads = self.spent = 0
        self._tokens = BURST_READS if share > 0 else 0.0

    def spend(self, event: Hedged) -> bool:
        """Count an additional read; whether the budget allows one that is late."""
        self._tokens = min(BURST_READS, self._tokens + event.share * (event.reads - self.reads))
        is_allowed = self._tokens + ROUNDING >= 1
        self._tokens = max(self._tokens - 1, -BURST_READS)
        self.reads, self.spent = event.reads, event.spent
        return is_allowed


def hedging_keeps_its_budget(history: History, verdict: Verdict) -> None:
    """Every additional read is counted once, and one that is only late is in the budget: a share of the reads, and a few saved up."""
    budgets: dict[str, _Budget] = {}
    for event in history.of(Hedged):
        verdict.decided += 1
        budget = budgets.get(event.client)
        if budget is None or event.spent == 1:
            # The first additional read of a client, or of another one in a further life of its node.
            budget = budgets[event.client] = _Budget(event.share)
        if event.spent != budget.spent + 1:
            verdict.violations.append(
                f"{event.client} counts {event.spent} additional reads at {event.time_s:.6f}, and {budget.spent} at the one before"
            )
        if not budget.spend(event) and event.reason == LATE:
            verdict.violations.append(
                f"{event.client} read a late entry again at {event.time_s:.6f}: additional reads {event.spent} of {event.reads}, "
                f"more than {event.share:g} of them and the {BURST_READS:g} that may be saved up"
            )
