"""Invariants: what must hold after every step, what must come to pass, and what clients may see."""
