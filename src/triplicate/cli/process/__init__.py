"""The common part of all server processes of the command line."""
