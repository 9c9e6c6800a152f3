"""Cycles between transactions (docs/anomalies.md section 3): Elle's G0 and G1c.

Nodes are transactions: sends and polls that carry the same ``extra.txn``. Sends that are none are no nodes,
however many records they have: nothing in Kafka keeps the records of a send together.

=====  =======================================================================================================
ww     a record of one transaction is followed, among records of transactions in its partition, by one of
       another
wr     a transaction was given a record that another one sent
rt     one transaction had completed before another was invoked
=====  =======================================================================================================

A consumer reads ahead and a poll never proves that there was no more, so there are no anti-dependencies (rw).
Edges that real time implies anyway say nothing and are left out. What is left is a sparse graph, whose
strongly connected components are found in linear time; real time is a chain of times in it, not a square of
pairs (wrackline.checkers.anomalies.transactions.cycle_search).

Kafka does not isolate writes (KIP-98): records of open transactions lie between each other. What it promises
at read_committed is that nobody is given a record before its transaction has committed, and so a cycle of
reads alone cannot be: everyone in it would have committed before the next one did.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from wrackline.checkers.anomalies.transactions.cycle_search import Edges, Graph, Nodes, Step, circles
from wrackline.checkers.anomalies.transactions.events import Events
from wrackline.checkers.anomalies.transactions.matches import Matches, in_final_read
from wrackline.checkers.checks.about import AboutRun
from wrackline.checkers.checks.events import Records
from wrackline.checkers.checks.finding import Finding, seconds
from wrackline.checkers.inputs.table import NEVER, NONE, Bools, Ints, bools, concatenated, constant, place_in


def cycles(events: Events, matches: Matches, about: AboutRun) -> Iterator[Finding]:
    """Yields for each component of writes and real time the shortest cycle through its first node, edge by
    edge, and the same for each component of reads alone; for each component of all with a read that does
    not lie within one of those, the shortest cycle through that read."""
    graph = graph_of(events, matches, about)
    nodes, edges = graph.nodes, graph.edges
    for circle in circles(graph):
        rows = [step.edge for step in circle if step.edge is not None]
        reads = [bool(edges.reads[row]) for row in rows]
        kind = "write-cycle"
        if any(reads):
            kind = "read-cycle" if len(rows) == len(circle) and all(reads) else "write-read-cycle"
        members = np.array([step.source for step in circle])
        sentence = "; ".join(_reason(step, graph, about) for step in circle)
        yield Finding(
            anomaly=kind,
            log=about.of_number[int(edges.log[rows[0]])] if rows else None,
            offset=int(edges.offset[rows[0]]) if rows else None,
            value=int(edges.value[rows[0]]) if rows else None,
            operations=[*nodes.invoke[members].tolist(), *nodes.complete[members].tolist()],
            sentence=f"Transactions follow each other in a cycle: {sentence}",
            since_ns=int(nodes.invoke_ns[members].min()),
            until_ns=int(nodes.complete_ns[members].max()),
        )


def graph_of(events: Events, matches: Matches, about: AboutRun) -> Graph:
    """Builds the graph of the records that committed transactions sent and were given, as far as the final
    read does not say that they are gone: the offset of a lost record is used again, which is loss, and no
    order."""
    sends, polls, records = _operations(events, matches)
    records = records.take(_counts(records, events.final, about))
    operations, is_sent = concatenated(Nodes, [sends, polls]), records.of < len(sends)
    nodes, node_of = _nodes(operations, np.unique(records.of))
    node, complete = node_of[records.of], operations.complete[records.of]
    log = np.unique(records.log, return_inverse=True)[1]
    at = log * (1 + records.offset.max(initial=0)) + records.offset
    sent = np.lexsort((records.value, complete, at))
    sent = sent[is_sent[sent]]
    sent = sent[np.diff(at[sent], prepend=-1) != 0]
    read = np.lexsort((records.value, at, complete))
    read = read[~is_sent[read]]
    result = place_in(at[sent], at[read])
    read, source = read[result != NONE], sent[result[result != NONE]]
    alike = records.value[read] == records.value[source]
    read, source = read[alike], source[alike]
    before = np.flatnonzero(np.diff(log[sent]) == 0)
    before, after = sent[before], sent[before + 1]
    none = np.full(len(read), NONE)
    writes = (records.offset[after], records.value[after])
    edges = concatenated(
        Edges,
        [
            _edges(node[before], node[after], 0, records.take(before), *writes),
            _edges(node[source], node[read], 1, records.take(read), none, none),
        ],
    )
    return Graph(nodes, edges.take(edges.source != edges.target))


def _edges(source: Ints, target: Ints, reads: int, of: Records, offset: Ints, value: Ints) -> Edges:
    return Edges(source, target, constant(reads, len(source)), of.log, of.offset, of.value, offset, value)


def _counts(records: Records, final: Records, about: AboutRun) -> Bools:
    logs, log = np.unique(records.log, return_inverse=True)
    known = [about.of_number[number] for number in logs.tolist()]
    complete = np.array([one.complete for one in known], bool)[log]
    unread = np.array([NEVER if one.unread_from is None else one.unread_from for one in known], np.int64)[log]
    there = in_final_read(records, final) | ~complete | (records.offset >= unread)
    return bools(there & (records.offset >= 0) & (records.value >= 0))


def _operations(events: Events, matches: Matches) -> tuple[Nodes, Nodes, Records]:
    """Sends and polls of transactions that succeeded, and their records, ``of`` places among them."""
    of_sends = [n for n, one in enumerate(matches.transactions) if one.paired and one.type == "ok"]
    rows = [
        (one.number, one.process, one.invoke_index, one.complete_index, one.invoke_ns, one.complete_ns)
        for one in (matches.transactions[n] for n in of_sends)
    ]
    sends = Nodes(*np.array(rows, np.int64).reshape(-1, 6).T)
    of_polls = events.polls.invoke_index != NONE
    some = events.polls.take(of_polls)
    polls = Nodes(some.txn, some.process, some.invoke_index, some.index, some.invoke_ns, some.ns)
    send, poll = np.full(len(matches.transactions), NONE), np.full(len(events.polls), NONE)
    send[of_sends] = np.arange(len(sends))
    poll[of_polls] = len(sends) + np.arange(len(polls))
    records = concatenated(
        Records,
        [
            replace(matches.sent, of=send[matches.sent.of]),
            replace(events.given, of=poll[events.given.of]),
        ],
    )
    return sends, polls, records.take(records.of != NONE)


def _nodes(operations: Nodes, some: Ints) -> tuple[Nodes, Ints]:
    """The transactions of these operations, in the order in which they began, and the place of each
    operation's among them."""
    every = operations.take(some)
    txns, which = np.unique(every.txn, return_inverse=True)

    def of(column: Ints, far: np.ufunc, start: int) -> Ints:
        result = np.full(len(txns), start)
        far.at(result, which, column)
        return result

    low, high = (np.minimum, NEVER), (np.maximum, NONE)
    invoke = of(every.invoke, *low)
    order = np.argsort(invoke, kind="stable")
    rest = (of(every.complete, *high), of(every.invoke_ns, *low), of(every.complete_ns, *high))
    nodes = Nodes(txns, of(every.process, *low), invoke, *rest).take(order)
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    node_of = np.full(len(operations), NONE)
    node_of[some] = number[which]
    return nodes, node_of


def _reason(step: Step, graph: Graph, about: AboutRun) -> str:
    """Says why one transaction follows another."""
    nodes, edges = graph.nodes, graph.edges
    source, target = (
        f"transaction {int(nodes.txn[n])} (process {about.process(int(nodes.process[n]))})"
        for n in (step.source, step.target)
    )
    row = step.edge
    if row is None:
        done, begun = (
            int(c[n]) for c, n in ((nodes.complete_ns, step.source), (nodes.invoke_ns, step.target))
        )
        return f"{source} had completed at {seconds(done)}, before {target} was invoked at {seconds(begun)}"
    value, where = about.value(int(edges.value[row])), about.of_number[int(edges.log[row])]
    at = f"at offset {int(edges.offset[row]):,} of {where}"
    if edges.reads[row]:
        return f"{source} sent value {value}, which {target} read {at}"
    return (
        f"{source} wrote value {value} {at}, before value {about.value(int(edges.next_value[row]))} that "
        f"{target} wrote at offset {int(edges.next_offset[row]):,}"
    )
