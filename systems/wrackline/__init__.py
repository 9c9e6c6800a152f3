"""Our own broker as a system: what is packed, written and started on a host."""
