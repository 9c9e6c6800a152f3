"""Which ways the broker's rules have decided in runs of this process."""
