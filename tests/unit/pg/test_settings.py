"""Parameters of a session."""

from __future__ import annotations

import pytest

from triplicate.errors import SqlError
from triplicate.sql.pg.settings import Settings


def test_the_time_zone_is_utc_whatever_a_library_sends_at_the_start() -> None:
    settings = Settings("me", {"TimeZone": "Europe/Berlin", "options": "-c timezone=America/Chicago"})
    assert settings.get("timezone", is_leader=True) == "UTC"
    assert settings.reported(is_leader=True)["TimeZone"] == "UTC"


@pytest.mark.parametrize("name", ["UTC", "'utc'", "Etc/UTC", "GMT", "+00"])
def test_utc_may_be_set_by_any_of_its_names(name: str) -> None:
    settings = Settings("me", {})
    settings.set("timezone", name)
    assert settings.get("TimeZone", is_leader=True) == "UTC"


def test_another_time_zone_is_refused_by_name() -> None:
    with pytest.raises(SqlError, match="TimeZone") as refused:
        Settings("me", {}).set("TimeZone", "Europe/Berlin")
    assert refused.value.sqlstate == "0A000"


def test_a_style_of_dates_but_iso_is_refused_by_name() -> None:
    settings = Settings("me", {"DateStyle": "ISO"})
    with pytest.raises(SqlError, match="DateStyle") as refused:
        settings.set("DateStyle", "German")
    assert refused.value.sqlstate == "0A000"
    settings.set("datestyle", "'ISO, DMY'")
