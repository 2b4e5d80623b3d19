"""A freeze of ensembles is obeyed after its end."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata import EnsembleFreeze

TESTS = ["tests/unit/metadata/test_ensemble_freeze.py::test_an_expired_freeze_is_none"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(EnsembleFreeze, "is_active", lambda freeze, now_ms: True)
