"""The cluster and the session of `tests/spark`, for the long runs."""

from __future__ import annotations

from tests.spark.conftest import bench, cluster, litter_before, place, spark

__all__ = ["bench", "cluster", "litter_before", "place", "spark"]
