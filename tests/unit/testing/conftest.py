"""The fixtures that the package brings for pytest, imported here."""

from __future__ import annotations

from triplicate.testing.plugin import triplicate_cluster, triplicate_database, triplicate_key_value

__all__ = ["triplicate_cluster", "triplicate_database", "triplicate_key_value"]
