"""The journal: group commit before every acknowledgement, and replay after a crash."""
