"""Hunting mutants: caught at the first seed that notices, survivors and misfits fail, and only those count who are asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from triplicate.errors import ArgumentError
from triplicate_simulator import InvalidMutant, Mutant, Result, hunt_all, mutants_folder, read_mutants, violations_without_mutants
from triplicate_simulator.runner.mutants import caught_by, read_mutant, seeds_of

CAUGHT = '''"""An acknowledgement is written down before the entry was sent."""
from triplicate_simulator.checkers import ledger_promises

CHECKERS = ("read_order_is_write_order", "acknowledged_is_readable")


def apply(patch):
    from triplicate_simulator import Acknowledged, History

    add = History.add

    def reversed_ids(self, event):
        if isinstance(event, Acknowledged):
            event = Acknowledged(event.time_s, event.writer, event.ledger_id, event.entry_id + 100_000)
        add(self, event)

    patch(History, "add", reversed_ids)
'''
SURVIVOR = '''"""Nothing is broken."""


def apply(patch):
    from triplicate_simulator import History

    patch(History, "add", History.add)
'''
MISFIT = '''"""The attribute to replace does not exist."""


def apply(patch):
    from triplicate_simulator import History

    patch(History, "no_such_method", None)
'''


def write(folder: Path, name: str, text: str) -> Mutant:
    path = folder / f"{name}.py"
    path.write_text(text)
    return read_mutant(path)


@pytest.mark.deep
def test_a_mutant_is_caught_at_its_seed_and_a_survivor_and_a_misfit_are_not(tmp_path: Path) -> None:
    mutants = [write(tmp_path, name, text) for name, text in (("caught", CAUGHT), ("survivor", SURVIVOR), ("misfit", MISFIT))]
    caught, survivor, misfit = hunt_all(mutants, jobs=2, seeds_max=1)
    assert (caught.caught, caught.seed, caught.checker) == (True, 1, "acknowledged_is_readable")
    assert not survivor.caught
    assert "no seed up to 1 noticed" in survivor.note
    assert not misfit.caught
    assert "no_such_method" in misfit.note
    assert (survivor.judged, misfit.judged) == (True, False)


def test_a_mutant_says_what_it_is(tmp_path: Path) -> None:
    found = write(tmp_path, "one", '"""It is broken.\n\nMore."""\n\nKIND = "logs"\nCHECKERS = ("progress",)\n')
    assert (found.name, found.broken, found.kind, found.wanted()) == ("one", "It is broken.", "logs", ("progress",))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = 1\n", "docstring"),
        ('"""A."""\nKIND = "nonsense"\n', "nonsense"),
        ('"""A."""\nCHECKERS = ("nonsense",)\n', "nonsense"),
        ('"""A."""\nCHECKERS = "progress"\n', "tuple"),
    ],
)
def test_a_file_that_is_no_mutant_is_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(InvalidMutant, match=why):
        write(tmp_path, "bad", text)


def test_an_unknown_name_is_refused_with_those_there_are(tmp_path: Path) -> None:
    write(tmp_path, "one", SURVIVOR)
    with pytest.raises(ArgumentError, match="no mutant 'two'; there are: one"):
        read_mutants(tmp_path, ["two"])


def test_only_the_named_checkers_catch_a_mutant() -> None:
    def result(*violations: str) -> Result:
        return Result(1, "ledgers", "", 1.0, {}, {}, [], list(violations))

    anyone, asked = Mutant("a", "", "a"), Mutant("b", "", "b", checkers=("leaks",))
    seen = result("leak: task x", "acknowledged_in_order: entry 8")
    assert caught_by(anyone, seen) == ("acknowledged_in_order", "acknowledged_in_order: entry 8")
    assert caught_by(asked, seen) == ("leaks", "leak: task x")
    assert caught_by(anyone, result("leak: task x", "no progress: y", "unhandled: z")) is None


def test_seeds_of_a_workload_are_those_that_run_it() -> None:
    assert seeds_of("ledgers", 8)[:3] == [1, 2, 4]
    assert all(seed % 10 == 3 for seed in seeds_of("logs", 100))


def test_the_mutants_of_this_checkout_are_well_formed() -> None:
    mutants = read_mutants(mutants_folder())
    assert len({mutant.name for mutant in mutants}) == len(mutants)


def test_the_code_as_it_is_is_clean() -> None:
    assert violations_without_mutants(["ledgers"], 1) == []
