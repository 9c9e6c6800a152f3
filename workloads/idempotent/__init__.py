"""Workload ``idempotent``: what ``log`` does, by idempotent producers that try again for long."""

from wrackline.workloads.idempotent.workload import IdempotentSpec, IdempotentWorkload

__all__ = ["IdempotentSpec", "IdempotentWorkload"]
