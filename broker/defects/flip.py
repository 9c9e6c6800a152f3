"""The definition of a defect that turns a switch: a defect that decides nothing has nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar


class SwitchDefect:
    """A defect that overrides no rule.

    ``flips``, here or in a defect that overrides a rule too, is the wrong value of each field of ``Switches``
    that it turns. ``only_with`` names a switch that must be on for a defect to make a difference.
    """

    flips: ClassVar[Mapping[str, bool]]
