"""When operations are due, and which: asked rate, mix, seed."""

from wrackline.harness.generators.pace import Generator, Lanes, Slot, Spacing

__all__ = ["Generator", "Lanes", "Slot", "Spacing"]
