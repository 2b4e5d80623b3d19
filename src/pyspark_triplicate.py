"""Makes ``format("triplicate")`` known to Spark without registering: Spark looks into modules whose names begin with ``pyspark_``."""

from triplicate.spark import TriplicateDataSource as DefaultSource

__all__ = ["DefaultSource"]
