"""The logs of the demonstration. They are encrypted where the environment names a key file, under its newest key."""

from __future__ import annotations

import os

from triplicate.client import Client
from triplicate.config import settings_of_environment
from triplicate.log import LogClientSettings, Logs, read_keys


def demo_logs(client: Client) -> Logs:
    """The logs of the cluster, with the settings of the environment."""
    return Logs(client, _settings())


def demo_key() -> str:
    """The id of the newest key of the key file (TRIPLICATE_LOG_CLIENT_KEYS_FILE); empty without a file. Raises ConfigError."""
    path = _settings().keys_file
    return next(reversed(read_keys(path)), "") if path else ""


def _settings() -> LogClientSettings:
    return settings_of_environment(LogClientSettings, os.environ)
