"""Options, offsets and schemas. No input or output."""
