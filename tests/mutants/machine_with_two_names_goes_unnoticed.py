"""Hosts are compared by name alone, so that a machine with two names is not recognized."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

TESTS = ["tests/unit/cli/overview/test_cluster_sources.py::test_a_machine_with_two_names_is_recognized_by_its_address"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.cli.overview import cluster_sources

    def by_name(addresses: Mapping[str, Collection[str]]) -> tuple[tuple[str, ...], ...]:
        return ()

    patch(cluster_sources, "shared_machines", by_name)
