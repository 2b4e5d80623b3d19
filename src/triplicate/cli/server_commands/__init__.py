"""Commands that run servers, or show their state."""
