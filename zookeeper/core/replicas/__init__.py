"""Replicas on a broker of profile zk08: who leads them, and what a leader does."""
