"""One seeded run: ``run(setup)`` does it, ``Run`` is the same in parts."""

from wrackline.simulator.run.result import Result
from wrackline.simulator.run.session import Run, run

__all__ = ["Result", "Run", "run"]
