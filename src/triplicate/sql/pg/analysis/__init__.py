"""Parse analysis: scopes and types."""
