"""The order of the wings of a room."""

from __future__ import annotations

from collections.abc import Iterator

from scripts.floor_plan import Graph


def upward(order: tuple[str, ...], wings: Graph) -> Iterator[str]:
    """Arrows that lead from a wing to one above it, as messages."""
    for wing in wings:
        for other in wings[wing]:
            if wing in order and other in order and order.index(other) > order.index(wing):
                yield f"{wing} imports {other}, which stands above it; move the shared part down, or hand the object in from above"
