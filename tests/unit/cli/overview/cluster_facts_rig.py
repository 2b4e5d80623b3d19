"""Constructed facts: a healthy, a wounded and a recovering cluster."""

from __future__ import annotations

from dataclasses import replace

from triplicate.cli.overview.core.cluster_facts import (
    BookieFacts,
    BookieState,
    ClusterFacts,
    CopyFacts,
    KnownNode,
    LedgerCounts,
    Listed,
    LogFacts,
    MarkFacts,
    RecoveryFacts,
    ReplicaFacts,
)

GIB = 1024**3
NOW_MS = 1_790_000_000_000


def bookie(number: int, state: BookieState = BookieState.WRITABLE) -> BookieFacts:
    """A bookie that answers. Lost ones have no address and no disk space."""
    if state is BookieState.LOST:
        return BookieFacts(f"bookie-{number}", state)
    return BookieFacts(
        f"bookie-{number}",
        state,
        address=f"10.0.{number}.1:3181",
        location=f"/rack-{number}",
        total_bytes=100 * GIB,
        free_bytes=number * 10 * GIB,
    )


def healthy() -> ClusterFacts:
    """Three bookies, two databases with two copies each, two logs."""
    return ClusterFacts(
        "an-instance",
        NOW_MS,
        Listed((bookie(1), bookie(2), bookie(3))),
        LedgerCounts(12, 2, {"bookie-1": 12, "bookie-2": 11, "bookie-3": 12}),
        Listed((KnownNode("node-1"), KnownNode("node-2"))),
        Listed(
            (
                ReplicaFacts("shop", "node-1", (CopyFacts("node-1", "leader", 0), CopyFacts("node-2", "follower", 17)), 2),
                ReplicaFacts("stock", "node-2", (CopyFacts("node-1", "follower", 0), CopyFacts("node-2", "leader", 0)), 2),
            )
        ),
        Listed((LogFacts("events", "a writer", 3, 41), LogFacts("old", None, 1, None))),
        Listed(()),
        RecoveryFacts(True, "bookie-1"),
    )


def wounded() -> ClusterFacts:
    """One bookie is lost, one does not answer; a database has no leader; a log has lost, missing and reduced segments."""
    facts = healthy()
    silent = replace(bookie(3), total_bytes=None, free_bytes=None, silence="no answer within 10 s")
    return replace(
        facts,
        bookies=Listed((bookie(1), bookie(2, BookieState.LOST), silent)),
        databases=Listed((ReplicaFacts("shop", None, (CopyFacts("node-2", "diverged", 3, "its log differs"),)),)),
        logs=Listed((LogFacts("events", None, 4, None, reduced=2, lost=1, missing=(40,)),)),
        marks=Listed((MarkFacts(7, ("bookie-2",), NOW_MS - 600_000, None), MarkFacts(9, ("bookie-2",), NOW_MS - 60_000, None))),
        recovery=RecoveryFacts(False, None),
    )


def recovering() -> ClusterFacts:
    """A bookie is lost, and two workers repair its ledgers."""
    marks = tuple(MarkFacts(number, ("bookie-2",), NOW_MS - 120_000, "bookie-1" if number < 3 else None) for number in range(1, 6))
    return replace(healthy(), bookies=Listed((bookie(1), bookie(2, BookieState.LOST), bookie(3))), marks=Listed(marks))
