"""PostgreSQL's types, and the formats and conversions of their values."""
