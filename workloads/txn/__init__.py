"""Workload ``txn``: transactional producers that read, write to several partitions and send offsets, and
consumers of committed records."""

from wrackline.workloads.txn.spec import TxnSpec
from wrackline.workloads.txn.workload import TxnWorkload

__all__ = ["TxnSpec", "TxnWorkload"]
