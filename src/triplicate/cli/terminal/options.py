"""Command-line options derived from settings, so that flags, file, variables and reference page agree."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from triplicate.cli.supervision.cluster_folder import CLIENT_FILE, read_folder
from triplicate.config import (
    CONFIG_VARIABLE,
    METADATA_VARIABLE,
    Configuration,
    Key,
    MetadataSettings,
    SecuritySettings,
    keys_of,
    load,
    section_of,
    settings_of_environment,
    variable_of,
)
from triplicate.errors import ConfigError, FormatError
from triplicate.metadata import MetadataAccess
from triplicate.runtime import Host
from triplicate.security import gaps_of_metadata_client, refuse_gaps

Command = TypeVar("Command", bound=Callable[..., Any])
Settings = TypeVar("Settings")

DEFAULT_FOLDER = "triplicate-data"
_URI_VARIABLE = variable_of("metadata", "uri")


class FiniteRange(click.FloatRange):
    """A number within bounds. click's own type also takes NaN, and infinity where it has one bound."""

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> float:
        number = super().convert(value, param, context)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, context)
        return float(number)


def settings_options(own: type, *others: type) -> Callable[[Command], Command]:
    """Add ``--config`` and one option per setting. The command receives ``config`` and ``flags`` (by ``section.key``).

    Args:
        own: the section of the process. Its flags may omit the section's name.
        others: sections whose flags begin with the section's name.
    """

    def decorate(command: Command) -> Command:
        def collected(**arguments: Any) -> Any:
            flags = {path: arguments.pop(_parameter(path)) for path in paths}
            return command(flags={path: value for path, value in flags.items() if value not in (None, ())}, **arguments)

        collected.__name__ = command.__name__
        collected.__doc__ = command.__doc__
        collected.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
        keys = [key for settings in (own, *others) for key in keys_of(settings)]
        paths = [key.path for key in keys]
        wrapped: Any = collected
        for key in reversed(keys):
            wrapped = _option(key, short=key.section == section_of(own))(wrapped)
        config = click.option("--config", type=click.Path(dir_okay=False), help="TOML file with the settings of this process.")
        return config(wrapped)  # type: ignore[no-any-return]

    return decorate


def _parameter(path: str) -> str:
    return "setting_" + path.replace(".", "_")


def _option(key: Key, *, short: bool) -> Callable[[Any], Any]:
    names = [key.flag]
    if short:
        names.insert(0, "--" + key.name.replace("_", "-"))
    if key.path == "metadata.uri":
        names.insert(0, "--metadata")
    several = isinstance(key.default, tuple)
    unit = f" [{key.info.unit}]" if key.info.unit else ""
    return click.option(*names, _parameter(key.path), default=None, multiple=several, metavar="VALUE", help=key.info.help + unit)


def load_configuration(sections: Sequence[type], config: str | None, flags: Mapping[str, object]) -> Configuration:
    """Read the settings of this process from its file, the environment and the flags.

    `METADATA_VARIABLE` is a client's word for the cluster that it means. It must not move a server from the cluster that its file names.

    Raises:
        ConfigError: see `triplicate.config.load`.
    """
    found = load(sections, file=config, environment=os.environ, flags=flags)
    if METADATA_VARIABLE in os.environ and found.source("metadata.uri") == "default":
        environment = {**os.environ, _URI_VARIABLE: os.environ[METADATA_VARIABLE]}
        return load(sections, file=config, environment=environment, flags=flags)
    return found


def metadata_option(command: Command) -> Command:
    """Add ``--metadata`` to a client command. The command receives the URI, or None."""
    return click.option(
        "--metadata",
        metavar="URI",
        envvar=[METADATA_VARIABLE, _URI_VARIABLE],
        help="The cluster: sqlite:///absolute/path/metadata.db, or zk://host:port;host:port/ledgers. "
        f"Default: the cluster in ./{DEFAULT_FOLDER}.",
    )(command)


def limit_option(help_text: str, default_s: float = 10.0, *, least_s: float = 0.1, most_s: float = 3600) -> Callable[[Command], Command]:
    """A decorator that adds ``--timeout SECONDS``. The command receives it as `limit_s`."""
    return click.option(
        "--timeout",
        "limit_s",
        type=FiniteRange(least_s, most_s),
        default=default_s,
        show_default=True,
        metavar="SECONDS",
        help=help_text,
    )


def cluster_uri(given: str | None) -> str:
    """The given URI, that in the settings of client commands, or that of the cluster in the default folder.

    Raises:
        ConfigError: there is none, the given one is empty, or security is required and the connection to the metadata is not secure.
    """
    if given == "":
        raise ConfigError("--metadata is empty: give the URI of a cluster, or leave the option out")
    uri = given or client_settings(MetadataSettings).uri
    if uri:
        return secured(uri)
    folder = read_folder(Path(DEFAULT_FOLDER))
    if folder is not None and folder.metadata_path.exists():
        return folder.metadata_uri
    raise ConfigError(f"which cluster? give --metadata URI, set {METADATA_VARIABLE}, or start one here with `triplicate up`")


def secured(uri: str) -> str:
    """Return the URI of a client command's cluster after checking that nothing is missing if security is required.

    Raises:
        ConfigError: something is missing.
    """
    security = client_settings(SecuritySettings)
    refuse_gaps(security, gaps_of_metadata_client(replace(client_settings(MetadataSettings), uri=uri), security))
    return uri


def folder_of(uri: str) -> str:
    """The folder of `triplicate up` with the cluster at a URI; ``FOLDER`` if it is not known."""
    for path in (Path(uri.removeprefix("sqlite://")).parent, Path(DEFAULT_FOLDER)):
        with contextlib.suppress(FormatError, OSError):
            folder = read_folder(path)
            if folder is not None and folder.metadata_uri == uri:
                return str(path)
    return "FOLDER"


def metadata_access(host: Host, configuration: Configuration | None = None) -> MetadataAccess:
    """The access of this process to ZooKeeper: of a server's configuration, or as a client command's settings say.

    Raises:
        ConfigError: see `MetadataAccess.of`; also if security is required and something is missing.
    """
    if configuration is not None:
        return MetadataAccess.of(configuration.get(MetadataSettings), configuration.get(SecuritySettings), host)
    security = client_settings(SecuritySettings)
    return MetadataAccess.of(client_settings(MetadataSettings), security, host)


def client_file() -> str | None:
    """The file with the settings of client commands: the one that a variable names, or that of a secured cluster in the default folder."""
    named = os.environ.get(CONFIG_VARIABLE)
    if named:
        return named
    beside = Path(DEFAULT_FOLDER).absolute() / CLIENT_FILE
    # A variable that names another cluster must not meet this one's certificates and passwords.
    uri = os.environ.get(_URI_VARIABLE) or os.environ.get(METADATA_VARIABLE)
    if not beside.exists() or (uri and uri != _uri_in(str(beside))):
        return None
    return str(beside)


def _uri_in(file: str) -> str:
    return settings_of_environment(MetadataSettings, {CONFIG_VARIABLE: file}).uri


def client_settings(settings: type[Settings]) -> Settings:
    """The settings of a client command, from defaults, `client_file` and variables.

    Raises:
        ConfigError: see `triplicate.config.load`.
    """
    environment = dict(os.environ)
    if METADATA_VARIABLE in environment:
        environment.setdefault(_URI_VARIABLE, environment[METADATA_VARIABLE])
    environment[CONFIG_VARIABLE] = client_file() or ""
    return settings_of_environment(settings, environment)
