"""A machine is forgotten with the address of its bookie, so that copies share the machines that are left."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.core.known_addresses import KnownAddresses

TESTS = ["tests/unit/metadata/core/test_known_addresses.py::test_a_machine_is_known_although_the_address_is_forgotten"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(KnownAddresses, "all", lambda self: dict(self._infos))
