"""Settings come from flag, variable, file and default, in that order, and a mistake is named with its cure."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from triplicate.config import Configuration, keys_of, load, section_of, setting, to_toml
from triplicate.errors import ConfigError


@dataclasses.dataclass(frozen=True, slots=True)
class WidgetSettings:
    port: int = setting(0, "Where it listens.", low=0, high=65535)
    cache_bytes: int = setting(64 * 2**20, "How much it keeps.", unit="bytes", low=4096)
    timeout_s: float = setting(10.0, "How long it waits.", unit="seconds", low=0.001, high=3600)
    mode: str = setting("refuse", "Its action.", choices=("refuse", "count", "off"))
    folders: tuple[str, ...] = setting(("data",), "Where it writes.", low=1)
    verbose: bool = setting(False, "Whether it talks.")
    name: str | None = setting(None, "Its name.")
    inner: int = 7


@dataclasses.dataclass(frozen=True, slots=True)
class OtherPartSettings:
    port: int = setting(1, "Another port.", low=1)


SECTIONS = (WidgetSettings, OtherPartSettings)


def load_file(tmp_path: Path, text: str, **more: object) -> Configuration:
    path = tmp_path / "widget.toml"
    path.write_text(text)
    return load(SECTIONS, file=str(path), **more)  # type: ignore[arg-type]


def test_defaults_hold_where_nothing_is_said() -> None:
    configuration = load(SECTIONS)
    assert configuration.get(WidgetSettings) == WidgetSettings()
    assert configuration.source("widget.port") == "default"


def test_a_section_is_named_after_its_class() -> None:
    assert section_of(OtherPartSettings) == "other_part"
    assert [key.path for key in keys_of(OtherPartSettings)] == ["other_part.port"]


def test_a_field_that_is_no_setting_is_not_offered() -> None:
    assert "inner" not in [key.name for key in keys_of(WidgetSettings)]


def test_a_flag_wins_over_a_variable_and_a_variable_over_the_file(tmp_path: Path) -> None:
    text = "[widget]\nport = 1\ntimeout_s = 1\nmode = 'count'\n"
    environment = {"TRIPLICATE_WIDGET_PORT": "2", "TRIPLICATE_WIDGET_TIMEOUT_S": "2", "PATH": "x"}
    configuration = load_file(tmp_path, text, environment=environment, flags={"widget.port": 3, "widget.mode": None})
    widget = configuration.get(WidgetSettings)
    assert (widget.port, widget.timeout_s, widget.mode) == (3, 2.0, "count")
    assert configuration.source("widget.port") == "flag --widget-port"
    assert configuration.source("widget.timeout_s") == "environment variable TRIPLICATE_WIDGET_TIMEOUT_S"
    assert configuration.source("widget.mode").startswith("file ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("64 MiB", 64 * 2**20), ("10 MB", 10_000_000), ("1_048_576 B", 2**20), ("1.5gib", 3 * 2**29), ("9007199254740993", 2**53 + 1)],
)
def test_a_size_may_carry_its_unit(text: str, expected: int) -> None:
    assert load(SECTIONS, flags={"widget.cache_bytes": text}).get(WidgetSettings).cache_bytes == expected


@pytest.mark.parametrize(("text", "expected"), [("200 ms", 0.2), ("10 s", 10.0), ("5 min", 300.0), ("1h", 3600.0), ("0.25", 0.25)])
def test_a_duration_may_carry_its_unit(text: str, expected: float) -> None:
    assert load(SECTIONS, flags={"widget.timeout_s": text}).get(WidgetSettings).timeout_s == pytest.approx(expected)


def test_lists_and_switches_are_read_from_text_and_from_toml(tmp_path: Path) -> None:
    environment = {"TRIPLICATE_WIDGET_FOLDERS": "a, b", "TRIPLICATE_WIDGET_VERBOSE": "on"}
    widget = load(SECTIONS, environment=environment).get(WidgetSettings)
    assert (widget.folders, widget.verbose) == (("a", "b"), True)
    widget = load_file(tmp_path, "[widget]\nfolders = ['x', 'y z']\nverbose = true\nname = 'n'").get(WidgetSettings)
    assert (widget.folders, widget.verbose, widget.name) == (("x", "y z"), True, "n")


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("[widget]\nprot = 1", r"unknown setting widget\.prot \(file .*\); did you mean widget\.port\?"),
        ("[wigdet]\nport = 1", r"unknown section wigdet .*did you mean widget\?"),
        ("port = 1", r"unknown setting outside a section, port .*there are: other_part, widget"),
        ("[widget]\nport = 70000", r"widget\.port = 70000 \(file .*widget\.toml\): at most 65535 is allowed \(from 0 to 65535\)"),
        ("[widget]\nport = 'http'", r"widget\.port = 'http' \(file .*\): a number is expected"),
        ("[widget]\nport = true", r"widget\.port = True .*a number is expected"),
        ("[widget]\nport = 1.5", r"widget\.port = 1\.5 .*a whole number is expected"),
        ("[widget]\nport = nan", r"widget\.port = nan .*a finite number is expected"),
        ("[widget]\nport = inf", r"widget\.port = inf .*a finite number is expected"),
        ("[widget]\ntimeout_s = nan", r"widget\.timeout_s = nan .*a finite number is expected"),
        ("[widget]\ntimeout_s = -inf", r"widget\.timeout_s = -inf .*a finite number is expected"),
        ("[widget]\ntimeout_s = 'nan'", r"a number of seconds is expected"),
        ("[widget]\ntimeout_s = '1e999'", r"a finite number is expected"),
        (f"[widget]\ntimeout_s = '{10**400} ms'", r"a number of seconds is expected"),
        ("[widget]\ncache_bytes = '64 Mi'", r"a number of bytes is expected, for example 64 MiB"),
        ("[widget]\ncache_bytes = 1", r"at least 4096 bytes is allowed"),
        ("[widget]\nmode = 'on'", r"one of refuse, count, off is expected"),
        ("[widget]\nmode = 1", r"text in quotes is expected"),
        ("[widget]\nverbose = 'maybe'", r"true or false is expected"),
        ("[widget]\nfolders = [1]", r"every item of the list must be text"),
        ("[widget]\nfolders = []", r"at least 1 items"),
        ("[widget\n", r"is not TOML"),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_source(tmp_path: Path, text: str, pattern: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_file(tmp_path, text)
    assert re.search(pattern, str(caught.value))
    assert "\n" not in str(caught.value)


def test_a_mistake_in_the_environment_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"unknown environment variable TRIPLICATE_WIDGET_PROT; did you mean TRIPLICATE_WIDGET_PORT\?"):
        load(SECTIONS, environment={"TRIPLICATE_WIDGET_PROT": "1"})
    with pytest.raises(ConfigError, match=r"widget\.port = '-1' \(environment variable TRIPLICATE_WIDGET_PORT\): at least 0"):
        load(SECTIONS, environment={"TRIPLICATE_WIDGET_PORT": "-1"})


def test_a_variable_of_another_process_is_passed_over() -> None:
    load(SECTIONS, environment={"TRIPLICATE_BOOKIE_PORT": "1", "TRIPLICATE_METADATA": "memory:"})


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ConfigError, match=r"/nowhere/x\.toml cannot be read: No such file"):
        load(SECTIONS, file="/nowhere/x.toml")


def test_written_settings_are_read_back(tmp_path: Path) -> None:
    table = {"port": 5, "folders": ('a"b\\c', "ü\n"), "timeout_s": 0.5, "verbose": True, "name": None}
    widget = load_file(tmp_path, to_toml({"widget": table}, comment="two\nlines")).get(WidgetSettings)
    assert widget == WidgetSettings(port=5, folders=('a"b\\c', "ü\n"), timeout_s=0.5, verbose=True)
