"""Decisions of replicas, without input and output."""
