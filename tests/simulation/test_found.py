"""What seeds have found, each forced again: a line says what was wrong."""

from __future__ import annotations

from triplicate.sim import Plan, Strike, run_seed
from triplicate.sim.plays import LedgerLoad


def test_a_bookie_may_die_in_the_midst_of_its_start() -> None:
    """The simulator: a machine's death within its bookie's own start-up came out of the scenario as an error of its own."""
    struck_while_starting = 0
    for after in range(0, 12, 4):
        first = Strike("kill", 1.0, "bookie-1", lasts_s=0.1)
        second = Strike("crash_at", 1.101, "bookie-1", lasts_s=0.1, options={"operation": "any", "after": after})
        result = run_seed(after, Plan("ledgers", LedgerLoad(entries=20, ledgers=2), (first, second), 2.0))
        assert result.ok, str(result)
        told = [fact.kind for fact in result.facts if fact.node == "bookie-1"]
        kinds = [kind for kind in told if kind in ("host.start", "host.crash", "bookie.replayed")]
        lives = " ".join(kinds).split("host.start")
        struck_while_starting += any("host.crash" in life and "bookie.replayed" not in life for life in lives)
    assert struck_while_starting > 0
