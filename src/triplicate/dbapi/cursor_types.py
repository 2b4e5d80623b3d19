"""Types and limits that connections and cursors share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Parameters = Sequence[Any] | Mapping[str, Any]
Description = tuple[str, str | None, None, None, None, None, None]

FIRST_ROWS = 100
FURTHER_ROWS = 1000
"""Rows that pass between the threads at once."""
