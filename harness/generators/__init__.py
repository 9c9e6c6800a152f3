"""When operations are due, and which: asked rate, mix, seed."""

from harness.generators.pace import Generator, Slot, Spacing

__all__ = ["Generator", "Slot", "Spacing"]
