"""Network namespaces and links of a fleet on this machine."""
