"""Settings from a file, the environment and flags, in one place.

A process has one TOML file with one table per section; every key is also a variable ``TRIPLICATE_<SECTION>_<KEY>`` and a flag. A flag
overrides a variable, a variable overrides the file, and the file overrides the default. The module reads no global state: file name,
environment and flags are arguments.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import tomllib
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from triplicate.config.setting import SettingInfo
from triplicate.config.values import convert, toml_text
from triplicate.errors import ConfigError

Settings = TypeVar("Settings")
PREFIX = "TRIPLICATE_"


@dataclasses.dataclass(frozen=True, slots=True)
class Key:
    """One setting of one section, with its type, default and description."""

    section: str
    name: str
    annotation: Any
    default: Any
    info: SettingInfo

    @property
    def path(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        return variable_of(self.section, self.name)

    @property
    def flag(self) -> str:
        return f"--{self.section}-{self.name}".replace("_", "-")


def variable_of(section: str, name: str) -> str:
    """The environment variable of a setting."""
    return f"{PREFIX}{section}_{name}".upper()


def section_of(settings: type) -> str:
    """``BookieSettings`` is the section ``bookie``."""
    name = settings.__name__.removesuffix("Settings")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def keys_of(settings: type) -> Iterator[Key]:
    """The settings of one dataclass, in the order of declaration."""
    annotations = typing.get_type_hints(settings)
    for field in dataclasses.fields(settings):
        info = field.metadata.get("setting")
        if info is not None:
            yield Key(section_of(settings), field.name, annotations[field.name], field.default, info)


class Configuration:
    """The settings of one process, each section as a frozen dataclass, and the source of each value."""

    def __init__(self, values: Mapping[type, Any], sources: Mapping[str, str]) -> None:
        self._values = dict(values)
        self._sources = dict(sources)

    def get(self, settings: type[Settings]) -> Settings:
        """The section of this dataclass, which must be one of the loaded sections."""
        value: Settings = self._values[settings]
        return value

    def require(self, *needed: Sequence[str]) -> None:
        """Check that settings were set: a server that starts by mistake must not make files, or a name in the cluster, out of defaults.

        Args:
            needed: for each need the settings of which at least one must be set, the usual one first.

        Raises:
            ConfigError: it names the first need that is not met.
        """
        for paths in needed:
            if not any(path in self._sources for path in paths):
                raise ConfigError(
                    f"{paths[0]} is not set, and a server does not choose it by itself: put it into the --config file, "
                    f"or into the variable {PREFIX}{paths[0].replace('.', '_').upper()}"
                )

    def source(self, path: str) -> str:
        """The source of ``section.key`` in words; ``default`` if it was not set."""
        return self._sources.get(path, "default")


def load(
    sections: Sequence[type],
    *,
    file: str | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> Configuration:
    """Read the settings of a process.

    Args:
        sections: the settings dataclasses of this process.
        file: path of a TOML file, or None for none.
        environment: variables. Those that do not begin with ``TRIPLICATE_`` and a section are ignored.
        flags: values by ``section.key``; None means that the flag was not given.

    Raises:
        ConfigError: an unknown key (the nearest known one is named), a value of the wrong type or out of bounds (with key, value,
            bounds and source), or a file that cannot be read.
    """
    keys = {key.path: key for settings in sections for key in keys_of(settings)}
    chosen: dict[str, Any] = {}
    sources: dict[str, str] = {}
    layers = (_from_file(file, sections, keys), _from_environment(environment or {}, sections, keys), _from_flags(flags or {}, keys))
    for path, raw, source in (found for layer in layers for found in layer):
        key = keys[path]
        try:
            chosen[path] = convert(raw, key.annotation, key.info)
        except ValueError as error:
            raise ConfigError(f"{path} = {raw!r} ({source}): {error}") from None
        sources[path] = source
    return Configuration({settings: _build(settings, chosen) for settings in sections}, sources)


def _build(settings: type, chosen: Mapping[str, Any]) -> Any:
    values = {key.name: chosen[key.path] for key in keys_of(settings) if key.path in chosen}
    try:
        return settings(**values)
    except ValueError as error:
        raise ConfigError(f"section {section_of(settings)}: {error}") from None


Found = tuple[str, object, str]


def _from_file(file: str | None, sections: Sequence[type], keys: Mapping[str, Key]) -> Iterator[Found]:
    if file is None:
        return
    try:
        with open(file, "rb") as stream:
            tables = tomllib.load(stream)
    except OSError as error:
        raise ConfigError(f"the configuration file {file} cannot be read: {error.strerror}; check --config") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"the configuration file {file} is not TOML: {error}") from None
    source = f"file {file}"
    known = [section_of(settings) for settings in sections]
    for section, table in tables.items():
        if section not in known or not isinstance(table, dict):
            what = "section" if isinstance(table, dict) else "setting outside a section,"
            raise ConfigError(f"unknown {what} {section} ({source}){_nearest(section, known)}")
        for name, raw in table.items():
            path = f"{section}.{name}"
            if path not in keys:
                raise ConfigError(f"unknown setting {path} ({source}){_nearest(path, keys)}")
            yield path, raw, source


def _from_environment(environment: Mapping[str, str], sections: Sequence[type], keys: Mapping[str, Key]) -> Iterator[Found]:
    by_variable = {key.variable: key for key in keys.values()}
    prefixes = tuple(f"{PREFIX}{section_of(settings).upper()}_" for settings in sections)
    for variable in sorted(environment):
        if variable in by_variable:
            yield by_variable[variable].path, environment[variable], f"environment variable {variable}"
        elif variable.startswith(prefixes):
            raise ConfigError(f"unknown environment variable {variable}{_nearest(variable, by_variable)}")


def _from_flags(flags: Mapping[str, object], keys: Mapping[str, Key]) -> Iterator[Found]:
    for path, raw in flags.items():
        if path not in keys:
            raise ConfigError(f"unknown setting {path} (command line){_nearest(path, keys)}")
        if raw is not None:
            yield path, raw, f"flag {keys[path].flag}"


def _nearest(name: str, known: Iterable[str]) -> str:
    """The closest known name as a question, or the list of names if nothing is close and the list is short."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; there are: {', '.join(sorted(names))}" if len(names) <= 12 else "; see docs/reference/settings.md"


def to_toml(tables: Mapping[str, Mapping[str, object]], *, comment: str = "") -> str:
    """Settings in the format of `load`: one table per section, without values that are None."""
    lines = [f"# {line}" for line in comment.splitlines()]
    for section, table in tables.items():
        lines += ["", f"[{section}]"] if lines else [f"[{section}]"]
        lines += [f"{name} = {toml_text(value)}" for name, value in table.items() if value is not None]
    return "\n".join(lines) + "\n"
