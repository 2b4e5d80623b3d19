"""The connection of a Spark process to its cluster, and Arrow batches."""
