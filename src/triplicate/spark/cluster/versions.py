"""Differences between the supported releases of PySpark, 4.1 and later.

Limits on a micro-batch came with 4.2. With 4.1 streams have no limits: Spark requests the latest offset without the stream's position or
a limit, and runs one batch for a ``Trigger.AvailableNow``. An option that sets a limit is refused.
"""

from __future__ import annotations

import importlib.util
import inspect
from typing import TYPE_CHECKING, Any

import pyspark
from pyspark.sql.pandas.types import to_arrow_schema

from triplicate.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

HAS_LIMITS = importlib.util.find_spec("pyspark.sql.streaming.datasource") is not None

if TYPE_CHECKING or HAS_LIMITS:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )
else:

    class SupportsTriggerAvailableNow:
        """Replaces a class that PySpark 4.1 lacks and never calls."""

    class ReadLimit:
        """A limit on a micro-batch."""

    class ReadAllAvailable(ReadLimit):
        """None."""

    class ReadMaxRows(ReadLimit):
        """A number of rows. Never created with PySpark 4.1."""

    class ReadMaxBytes(ReadLimit):
        """A number of bytes. Never created with PySpark 4.1."""

    class ReadMinRows(ReadLimit):
        """A least number of rows. Never created with PySpark 4.1."""


__all__ = [
    "HAS_LIMITS",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxBytes",
    "ReadMaxRows",
    "ReadMinRows",
    "SupportsTriggerAvailableNow",
    "arrow_schema",
    "check_limits",
]


def check_limits(source: str, **limits: int | None) -> None:
    """Refuse limits that this PySpark does not support.

    Args:
        limits: the options that set limits, with their values.

    Raises:
        ConfigError: a limit is set, and PySpark is older than 4.2.
    """
    if HAS_LIMITS:
        return
    for name, value in limits.items():
        if value is not None:
            raise ConfigError(
                f"{source}: option {name!r} needs PySpark 4.2 or later, and this is {pyspark.__version__}: drop it, or upgrade PySpark"
            )


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema for Spark's columns, with timestamps in UTC."""
    # PySpark 4.1 lacks this argument and always uses UTC.
    zone: dict[str, Any] = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
    return to_arrow_schema(schema, **zone)
