"""Is there an order of all transactions, as the asked level wants it?

Transactions over lists are decided exactly; over registers, what follows is worked out first, and what is
left is searched. What contradicts a level at one look is said of every level; where none of this decides,
Elle can be asked (wrackline.checkers.jvm).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wrackline.checkers.exact.judgement import Answer
from wrackline.checkers.exact.transactions.answers import Case, Decision, grouped
from wrackline.checkers.exact.transactions.columns import Transactions
from wrackline.checkers.exact.transactions.levels import ORDERS, STRICT, Order, excludes, of_cycle, weakest
from wrackline.checkers.exact.transactions.lists import Lists, lists
from wrackline.checkers.exact.transactions.placement import Limits, Placement
from wrackline.checkers.exact.transactions.precedence import Precedence
from wrackline.checkers.exact.transactions.registers import Reading, reading
from wrackline.checkers.exact.transactions.rows import Txn, rows
from wrackline.checkers.exact.transactions.saturation import add_reads, begin, saturate

LIST, REGISTERS = "list-append", "rw-register"
NOT_OURS = "our own search decides only whether there is an order of all transactions"


def decide(
    model: str,
    history: Transactions,
    limits: Limits,
    *,
    level: str = STRICT,
    progress: Callable[[str], None] = lambda _line: None,
) -> Decision:
    """``level``: one of LEVELS. UNKNOWN with ``repeated`` set is for nobody else to decide either."""
    txns = rows(history)
    result = lists(txns) if model == LIST else reading(txns)
    error = [one for one in result.wrong if excludes(level, one[0])]
    if error:
        return _wrong(error)
    if result.repeated is not None:
        return Decision(Answer.UNKNOWN, repeated=result.repeated)
    if result.wrong:
        return Decision(Answer.UNKNOWN, why=NOT_OURS)
    there = [one for one in txns if result.counts[one.row]]
    # Who keeps to real time keeps to every weaker level too, and that search is the shortest. The order of a
    # process is not part of real time where its transactions overlap, as sessions without times do.
    strict = _ordered(there, result, Order.REALTIME, STRICT, limits, progress)
    expected = ORDERS.get(level)
    beyond_time = expected is Order.PROCESS and _overlap(there)
    if expected is Order.REALTIME or (strict.answer is Answer.VALID and not beyond_time):
        return strict
    if expected is None:
        return Decision(Answer.UNKNOWN, why=NOT_OURS)
    return _ordered(there, result, expected, level, limits, progress)


def _overlap(txns: Sequence[Txn]) -> bool:
    """Tells whether some process begins a transaction before it has ended the one before."""
    last: dict[int, int] = {}
    for one in sorted(txns, key=lambda one: one.inv):
        if last.get(one.process, -1) > one.inv:
            return True
        last[one.process] = one.ret
    return False


def _wrong(found: Sequence[tuple[str, Case]]) -> Decision:
    refuted = {weakest(kind): None for kind, _ in found}
    strongest_first = [one for one in ("read-uncommitted", "read-committed", "read-atomic") if one in refuted]
    return Decision(Answer.INVALID, anomalies=grouped(found), refuted=tuple(strongest_first[:1]))


def _ordered(
    txns: Sequence[Txn],
    found: Lists | Reading,
    order: Order,
    level: str,
    limits: Limits,
    progress: Callable[[str], None],
) -> Decision:
    graph = Precedence(txns, order)
    if isinstance(found, Lists):
        for edge in found.edges:
            graph.add(edge)
        if graph.sorted() is None:
            return _cyclic(graph, level)
        return Decision(Answer.VALID)
    add_reads(graph, found)
    begin(graph, found)
    if not saturate(graph, found):
        return _cyclic(graph, level)
    answer, why, impasse = Placement(graph, found).search(limits, progress)
    return Decision(answer, searched=True, why=why, impasse=impasse)


def _cyclic(graph: Precedence, level: str) -> Decision:
    name, cycle = graph.cycle()
    case = Case(tuple(edge.before for edge in cycle), "", tuple(cycle))
    certain = all((graph.node[one.before], graph.node[one.after]) not in graph.assumed for one in cycle)
    return Decision(
        Answer.INVALID, anomalies={name: (1, (case,))}, refuted=of_cycle(name, level) if certain else (level,)
    )
