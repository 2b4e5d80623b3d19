"""The key-value store beside etcd: ``make bench-key-value``."""
