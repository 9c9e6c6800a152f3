"""Guided schedules that let a request of a transactional producer arrive late."""

from __future__ import annotations

from wrackline.nemesis.faults.kafka_apis import Api
from wrackline.nemesis.faults.network.connections import StallConnections
from wrackline.nemesis.guided.steps import Aim, GuidedStep, Heal, Inject, Sleep

ROUNDS = 3
"""Which transactions are ending when a broker's connections go silent is the workload's chance, so every
broker has its turn several times."""
STALL_S = 2.8
"""Longer than a client with a time-out of 1.5 s takes to give a request up; librdkafka looks once a
second."""
LATE_S = 3.7
"""The kernel sends again 0.2, 0.6, 1.4, 3 and 6.2 s after it sent first: what went out while the connection
was silent has arrived by then."""


def late_end_txn(aim: Aim) -> tuple[GuidedStep, ...]:
    """KAFKA-17754: an EndTxn that arrives late ends the next transaction of the same producer.

    One broker after another, the coordinators of some transactions: the EndTxn that clients send on the
    connections that they have is dropped; new connections pass, and so do records. A producer that ends its
    transaction gets no response, closes the connection and asks again on a new one, with success. It begins
    its next transaction. Then the old connection's packets pass, and its kernel delivers the first EndTxn: a
    coordinator that knows transactions by producer id and epoch alone ends the new transaction with the
    verdict of the old one.

    Needs producers that are kept for many transactions, hold each one open for a second or so while they
    write to several partitions, abort about half, and give a request up within 2 s. With EndTxn v5 (client
    and broker) each transaction has its own epoch, and the late request is refused.
    """
    aim.healthy(replicas=1)
    brokers = [node for node in aim.nodes.values() if node.is_broker and not node.spare]
    steps: list[GuidedStep] = []
    for number, node in enumerate(brokers * ROUNDS, 1):
        fault_id = f"g{number}"
        host = node.host.name
        steps += [
            Inject(fault_id, StallConnections((Api.END_TXN,)), (host,), "coordinator of some transactions"),
            Sleep(STALL_S, f"clients give up what they asked {host} and ask again on new connections"),
            Heal((fault_id,)),
            Sleep(LATE_S, "what they had asked first arrives"),
        ]
    return tuple(steps)
