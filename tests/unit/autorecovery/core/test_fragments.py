"""Fragments of ledgers: the entries of one position."""

from __future__ import annotations

import pytest

from triplicate.autorecovery.core.fragments import LedgerFragment


@pytest.mark.parametrize("shape", [(3, 3), (5, 2), (4, 3), (3, 1), (1, 1)])
def test_the_ends_of_a_fragment_are_its_first_and_last_entry(shape: tuple[int, int]) -> None:
    ensemble_size, write_quorum = shape
    for first in range(7):
        for last in range(first - 1, first + 12):
            for position in range(ensemble_size):
                fragment = LedgerFragment(first, last, tuple("abcde"[:ensemble_size]), position, write_quorum)
                entries = [entry_id for run in fragment.runs() for entry_id in run]
                assert list(fragment.ends()) == sorted({*entries[:1], *entries[-1:]})
