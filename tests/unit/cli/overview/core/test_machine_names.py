"""Hosts that have an address in common are one machine."""

from __future__ import annotations

import pytest

from triplicate.cli.overview.core.machine_names import shared_machines


@pytest.mark.parametrize(
    ("addresses", "groups"),
    [
        ({}, ()),
        ({"a": ["10.0.0.1"], "b": ["10.0.0.2"]}, ()),
        ({"a.example": ["10.0.0.1"], "10.0.0.1": ["10.0.0.1"]}, (("10.0.0.1", "a.example"),)),
        ({"a": ["10.0.0.1", "fd00::1"], "b": ["fd00::1", "fd00::2"], "c": ["fd00::2"]}, (("a", "b", "c"),)),
        ({"a": ["10.0.0.1"], "b": ["10.0.0.1"], "x": ["10.0.0.2"], "y": ["10.0.0.2"]}, (("a", "b"), ("x", "y"))),
        ({"unknown": [], "other": []}, ()),
    ],
)
def test_hosts_with_a_common_address_are_a_group(addresses: dict[str, list[str]], groups: tuple[tuple[str, ...], ...]) -> None:
    assert shared_machines(addresses) == groups
