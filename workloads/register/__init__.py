"""Workload ``register``: the last record written to a partition is the value of a register that clients write
and read."""

from wrackline.workloads.register.spec import RegisterSpec
from wrackline.workloads.register.workload import RegisterWorkload

__all__ = ["RegisterSpec", "RegisterWorkload"]
