"""A follower's fetches from its leader."""
