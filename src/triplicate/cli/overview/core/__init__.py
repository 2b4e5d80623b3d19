"""Pure: facts to problems, screen lines and verdicts."""
