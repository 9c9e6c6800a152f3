"""Workload ``compact``: records with keys, in a topic that keeps the last one of each key."""

from wrackline.workloads.compact.workload import CompactSpec, CompactWorkload

__all__ = ["CompactSpec", "CompactWorkload"]
