"""Options, output, pipes."""
