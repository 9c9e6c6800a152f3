"""Schemas of answers that kio's own do not read. It must read the types of fields at run time: here is no
``from __future__ import annotations``."""

from dataclasses import dataclass, field

from kio.schema.describe_transactions.v0 import response
from kio.static.primitive import i64


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTransaction(response.TransactionState):
    transaction_start_time: i64 = field(metadata={"kafka_type": "int64"})  # type: ignore[assignment]
    """In milliseconds; -1 where no transaction has begun, which is no time for kio."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTransactionsResponse(response.DescribeTransactionsResponse):
    transaction_states: tuple[DescribedTransaction, ...]
