"""The settings of a program without a command line of its own: a client command, a Spark executor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from triplicate.config.loader import PREFIX, load, section_of
from triplicate.config.sections import all_sections

Settings = TypeVar("Settings")

CONFIG_VARIABLE = "TRIPLICATE_CONFIG"
"""Names a TOML file with settings. It may have the sections of any process."""
METADATA_VARIABLE = "TRIPLICATE_METADATA"
"""Names the cluster of client commands. A server follows it only if no flag, no file and no variable of its own setting names one."""


def settings_of_environment(settings: type[Settings], environment: Mapping[str, str]) -> Settings:
    """One section, from defaults, the file that `CONFIG_VARIABLE` names, and variables.

    Variables of other sections are not looked at.

    Raises:
        ConfigError: see `load`.
    """
    prefix = f"{PREFIX}{section_of(settings)}_".upper()
    variables = {name: value for name, value in environment.items() if name.startswith(prefix)}
    file = environment.get(CONFIG_VARIABLE)
    sections = tuple(all_sections().values()) if file else (settings,)
    return load(sections, file=file or None, environment=variables).get(settings)
