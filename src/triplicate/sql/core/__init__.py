"""The row log's format and the little that must be known of SQL's grammar: pure functions over plain values."""
