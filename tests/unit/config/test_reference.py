"""The reference page of settings is what the settings say, and every setting says enough."""

from __future__ import annotations

from pathlib import Path

import pytest

from triplicate.config import Key, all_sections, keys_of
from triplicate.config.reference import page
from triplicate.config.values import convert

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "settings.md"
KEYS = [key for settings in all_sections().values() for key in keys_of(settings)]


def test_the_reference_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "a setting changed: run `make settings` and commit the page"


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.path)
def test_every_default_is_itself_allowed(key: Key) -> None:
    if key.default is not None:
        assert convert(key.default, key.annotation, key.info) == key.default


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.path)
def test_every_setting_is_explained_in_a_sentence(key: Key) -> None:
    assert key.info.help.strip().endswith((".", "?")), f"{key.path}: the help is one sentence with a full stop"


def test_no_two_settings_share_a_variable_or_flag() -> None:
    assert len({key.variable for key in KEYS}) == len(KEYS)
    assert len({key.flag for key in KEYS}) == len(KEYS)
