"""Machines that are registered under several names: placement compares the names, and takes one machine for several."""

from __future__ import annotations

from collections.abc import Collection, Mapping


def shared_machines(addresses: Mapping[str, Collection[str]]) -> tuple[tuple[str, ...], ...]:
    """The hosts that have an address in common, in groups of at least two, sorted.

    Args:
        addresses: of each host name or address in a registration; none if it could not be resolved.
    """
    groups: list[tuple[set[str], set[str]]] = []
    for host in sorted(addresses):
        names, found = {host}, set(addresses[host])
        others: list[tuple[set[str], set[str]]] = []
        for group in groups:
            if group[1] & found:
                names, found = names | group[0], found | group[1]
            else:
                others.append(group)
        groups = [*others, (names, found)]
    return tuple(sorted(tuple(sorted(names)) for names, _ in groups if len(names) > 1))
