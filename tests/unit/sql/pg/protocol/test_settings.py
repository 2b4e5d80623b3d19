"""Parameters of a session."""

from __future__ import annotations

import pytest

from triplicate.errors import SqlError
from triplicate.sql.core.read_levels import ReadLevel, ReadSettings
from triplicate.sql.pg.protocol.settings import SessionSettings, duration_s


def test_the_time_zone_is_utc_for_any_startup_parameters() -> None:
    settings = SessionSettings("me", {"TimeZone": "Europe/Berlin", "options": "-c timezone=America/Chicago"})
    assert settings.get("timezone", is_leader=True) == "UTC"
    assert settings.reported(is_leader=True)["TimeZone"] == "UTC"


@pytest.mark.parametrize("name", ["UTC", "'utc'", "Etc/UTC", "GMT", "+00"])
def test_utc_may_be_set_by_any_of_its_names(name: str) -> None:
    settings = SessionSettings("me", {})
    settings.set("timezone", name)
    assert settings.get("TimeZone", is_leader=True) == "UTC"


def test_another_time_zone_is_refused_by_name() -> None:
    with pytest.raises(SqlError, match="TimeZone") as refused:
        SessionSettings("me", {}).set("TimeZone", "Europe/Berlin")
    assert refused.value.sqlstate == "0A000"


def test_a_style_of_dates_but_iso_is_refused_by_name() -> None:
    settings = SessionSettings("me", {"DateStyle": "ISO"})
    with pytest.raises(SqlError, match="DateStyle") as refused:
        settings.set("DateStyle", "German")
    assert refused.value.sqlstate == "0A000"
    settings.set("datestyle", "'ISO, DMY'")


@pytest.mark.parametrize(
    ("value", "reported"), [("iso", "ISO, MDY"), ("'iso, dmy'", "ISO, DMY"), ("euro", "ISO, DMY"), ("ISO, YMD", "ISO, YMD")]
)
def test_the_style_of_dates_is_reported_as_clients_compare_it(value: str, reported: str) -> None:
    settings = SessionSettings("me", {})
    settings.set("datestyle", value)
    assert settings.reported(is_leader=True)["DateStyle"] == reported


@pytest.mark.parametrize("path", ["", "public", '"$user", public', "tenant, public", "pg_catalog", "Public"])
def test_a_search_path_that_finds_the_tables_is_kept(path: str) -> None:
    settings = SessionSettings("me", {})
    settings.set("search_path", path)
    assert settings.get("search_path", is_leader=True) == path


@pytest.mark.parametrize("path", ["tenant", '"$user"', "tenant, other"])
def test_a_search_path_without_the_one_schema_is_refused(path: str) -> None:
    with pytest.raises(SqlError, match="public") as refused:
        SessionSettings("me", {}).set("search_path", path)
    assert refused.value.sqlstate == "0A000"


def test_a_parameter_of_the_application_is_empty_once_it_is_forgotten() -> None:
    settings = SessionSettings("me", {})
    with pytest.raises(SqlError):
        settings.get("my.name", is_leader=True)
    settings.set("my.name", "x", local=True)
    settings.end_transaction()
    assert settings.get("my.name", is_leader=True) == ""


@pytest.mark.parametrize("text", ["-1", "2147483648", "25d", "1e999", "nan", "inf"])
def test_a_duration_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(SqlError) as refused:
        duration_s(text)
    assert refused.value.sqlstate == "22023"
    assert duration_s("2147483647") == pytest.approx(2147483.647)


def test_the_level_of_reads_may_come_with_the_start() -> None:
    settings = SessionSettings("me", {"options": "-c triplicate.read_level=Bounded -c triplicate.max_staleness=500ms"})
    assert settings.reads == ReadSettings(ReadLevel.BOUNDED, 0.5)
    settings.set("Triplicate.Read_Level", "any", local=True)
    assert settings.reads.level is ReadLevel.ANY
    settings.end_transaction()
    assert settings.get("triplicate.read_level", is_leader=False) == "bounded"
    settings.set("triplicate.read_position", "17")
    assert settings.reads == ReadSettings(ReadLevel.BOUNDED, 0.5, 17)
    settings.reset_all()
    assert settings.reads == ReadSettings(ReadLevel.BOUNDED, 0.5)


def test_a_level_of_reads_that_is_none_leaves_the_one_there_is() -> None:
    settings = SessionSettings("me", {})
    with pytest.raises(SqlError, match=r"triplicate\.read_level") as refused:
        settings.set("triplicate.read_level", "eventual")
    assert refused.value.sqlstate == "22023"
    assert settings.reads == ReadSettings()


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("0", "0"),
        ("2000", "2s"),
        ("1500", "1500ms"),
        ("7s", "7s"),
        ("120s", "2min"),
        ("60min", "1h"),
        ("24h", "1d"),
        ("20ms", "20ms"),
        ("0s", "0"),
    ],
)
@pytest.mark.parametrize("name", ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"])
def test_a_timeout_is_shown_with_its_unit(name: str, given: str, shown: str) -> None:
    settings = SessionSettings("me", {})
    settings.set(name, given)
    assert settings.get(name, is_leader=True) == shown
