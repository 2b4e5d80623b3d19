"""The protocol and the commands. Pure."""
