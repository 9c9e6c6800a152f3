"""Workload ``register``: the last record written to a partition is the value of a register that clients write and read."""

from workloads.register.spec import RegisterSpec
from workloads.register.workload import RegisterWorkload

__all__ = ["RegisterSpec", "RegisterWorkload"]
