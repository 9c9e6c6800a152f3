"""Campaigns: searches of a swarm within a time, with a corpus and seeds that go on from one to the next."""
