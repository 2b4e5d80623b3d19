"""The local cluster: its folder, its processes, and the probes that watch them."""
