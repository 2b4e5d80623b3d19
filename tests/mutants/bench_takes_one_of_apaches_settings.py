"""The benchmark compares with Apache's bookie after measuring only one of its two settings."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/benchmarks/ledger/test_ratios.py::test_one_of_apaches_settings_alone_is_not_enough"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from benchmarks.ledger.ratios import APACHE, Runs

    def best_of_what_is_there(self: Runs, case: str, figure: str, better: Callable[[list[float]], float]) -> float | None:
        known = [value for side in APACHE if (value := self.of(side, case, figure)) is not None]
        return better(known) if known else None

    patch(Runs, "best_of_apache", best_of_what_is_there)
