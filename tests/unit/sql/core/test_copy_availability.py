"""When a copy of a database accepts sessions."""

from __future__ import annotations

import pytest

from triplicate.errors import SqlError
from triplicate.sql.core.copy_availability import CopyAvailability

BUILT = SqlError("57P03", "it is built from the log")


def _state(availability: CopyAvailability) -> str:
    try:
        availability.check()
    except SqlError as error:
        return error.message
    return "served"


def test_a_copy_is_served_once_it_is_open() -> None:
    availability = CopyAvailability("db")
    assert "is starting" in _state(availability)
    availability.opened(None)
    assert _state(availability) == "served"


def test_a_suspected_copy_is_served_once_it_is_verified() -> None:
    availability = CopyAvailability("db")
    availability.opened("its place was not found")
    assert availability.suspicion == "its place was not found"
    assert "is starting" in _state(availability)
    availability.verified()
    assert availability.suspicion is None
    assert _state(availability) == "served"


@pytest.mark.parametrize("opens_first", [True, False])
def test_a_copy_that_is_built_from_the_log_is_served_once_it_has_caught_up(opens_first: bool) -> None:
    availability = CopyAvailability("db")
    availability.catch_up(BUILT)
    if opens_first:
        availability.opened(None)
        assert _state(availability) == BUILT.message
        availability.caught_up()
    else:
        availability.caught_up()
        assert "is starting" in _state(availability)
        availability.opened(None)
    assert _state(availability) == "served"


def test_catching_up_does_not_serve_a_copy_that_is_closed_for_another_reason() -> None:
    availability = CopyAvailability("db")
    availability.catch_up(BUILT)
    availability.opened(None)
    availability.loads_snapshot()
    availability.caught_up()
    assert "is loading a snapshot" in _state(availability)
    availability.opened(None)
    assert _state(availability) == "served"


def test_a_diverged_copy_says_why_and_keeps_its_reason_to_the_end() -> None:
    availability = CopyAvailability("db")
    availability.opened(None)
    error = availability.diverged("row 1 is missing", is_position_mismatch=False)
    assert error.sqlstate == "58000"
    assert availability.closing()
    assert not availability.closing()
    assert "row 1 is missing" in _state(availability)
