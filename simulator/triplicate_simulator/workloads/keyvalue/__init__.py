"""The workload of key-value stores."""
