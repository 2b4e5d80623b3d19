"""The parameters of a session's reads: which texts are taken, and what a refusal says."""

from __future__ import annotations

import pytest

from triplicate.errors import SqlError
from triplicate.sql.core.read_levels import (
    DEFAULTS,
    MAX_STALENESS,
    READ_LEVEL,
    READ_POSITION,
    ReadLevel,
    ReadSettings,
    checked_read_parameter,
    not_at_position,
    not_recent_enough,
)


def test_the_initial_values_are_those_of_the_settings() -> None:
    assert ReadSettings.of(*DEFAULTS.values()) == ReadSettings()


@pytest.mark.parametrize(
    ("text", "seconds"), [("5", 5.0), ("0.25", 0.25), ("250ms", 0.25), ("1.5 s", 1.5), ("2min", 120.0), ("1h", 3600.0), (" 7S ", 7.0)]
)
def test_a_staleness_is_a_number_of_seconds_or_has_a_unit(text: str, seconds: float) -> None:
    assert ReadSettings.of("bounded", text, "0") == ReadSettings(ReadLevel.BOUNDED, seconds)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (READ_LEVEL, "eventual"),
        (READ_LEVEL, ""),
        (MAX_STALENESS, "0"),
        (MAX_STALENESS, "-1"),
        (MAX_STALENESS, "nan"),
        (MAX_STALENESS, "inf"),
        (MAX_STALENESS, "25h"),
        (MAX_STALENESS, "5 days"),
        (MAX_STALENESS, ""),
        (READ_POSITION, "-1"),
        (READ_POSITION, "1.0"),
        (READ_POSITION, "١٢"),
        (READ_POSITION, str(1 << 63)),
        (READ_POSITION, "9" * 5000),
        (READ_POSITION, ""),
    ],
)
def test_another_text_is_refused_and_the_refusal_names_the_parameter(name: str, text: str) -> None:
    with pytest.raises(SqlError, match=name.replace(".", r"\.")) as caught:
        checked_read_parameter(name, text)
    assert caught.value.sqlstate == "22023"


def test_a_text_is_shown_in_small_letters() -> None:
    assert checked_read_parameter(READ_LEVEL, " Session ") == "session"


def test_a_refusal_says_how_far_behind_the_copy_is() -> None:
    behind = not_at_position("db", 10, 17, 5.0)
    assert (behind.sqlstate, behind.detail) == ("55P03", "It is 7 records behind the position of the session.")
    old = not_recent_enough("db", 12.3456, 10.0, 5.0, lacks=3, reason="no answer")
    assert "12.346 s behind" in str(old)
    assert old.detail == "It lacks 3 records. The end of the log is not known: no answer"
    unknown = not_recent_enough("db", None, 10.0, 5.0, lacks=0, reason="")
    assert "of unknown age" in str(unknown)
    assert unknown.detail is None
