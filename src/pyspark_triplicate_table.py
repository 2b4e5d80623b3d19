"""Makes ``format("triplicate-table")`` known to Spark without registering."""

from triplicate.spark import TableDataSource as DefaultSource

__all__ = ["DefaultSource"]
