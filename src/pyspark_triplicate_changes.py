"""Makes ``format("triplicate-changes")`` known to Spark without registering."""

from triplicate.spark import ChangesDataSource as DefaultSource

__all__ = ["DefaultSource"]
