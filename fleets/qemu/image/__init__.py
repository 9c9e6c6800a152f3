"""The image that the virtual machines of a fleet boot: built on this machine from its own Debian archive, and
kept."""
