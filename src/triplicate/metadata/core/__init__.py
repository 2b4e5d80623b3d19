"""The tree protocol, paths and encodings. Pure."""
