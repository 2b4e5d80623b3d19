"""The source `triplicate-changes`: rows and schema changes of a table."""
