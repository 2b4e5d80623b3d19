"""Connections and requests of clients."""
