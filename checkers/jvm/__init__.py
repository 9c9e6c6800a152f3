"""Knossos and Elle in a process of their own, for what the exact checks do not decide. Optional: needs JPype
and jars."""
