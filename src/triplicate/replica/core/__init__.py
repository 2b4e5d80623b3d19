"""Decisions of replicas, apart from input and output."""
