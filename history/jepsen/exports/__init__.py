"""A run's history in Jepsen's words, so that other checkers can judge it.

==============  ============================================================================================
``kafka``       what Jepsen's Kafka and Redpanda queue tests record: ``:send``, ``:poll``, ``:assign``,
                ``:subscribe``; a key is a partition. What a group's member was given is in its next poll's
                ``:rebalance-log``. The final read is polls of its own process, after an ``:assign`` with
                ``:seek-to-beginning? true``.
``list-append`` Elle (``elle-cli -m list-append``): a record sent is ``[:append k v]``, the final read of a
                partition one ``[:r k [...]]``. Polls do not fit: a read of this model is a whole prefix of
                the list.
                Where there are transactions, they are Elle's: wrackline.history.jepsen.exports.elle.
``rw-register`` Elle (``elle-cli -m rw-register``): the same transactions, with the last value of each list
``log``         ``wrackline check -m log --independent``: ``:append``, ``:read``, ``:end`` of ``[k ...]``
                tuples, with the offsets and ends of responses
``register``    Knossos: ``:write``, ``:read`` of ``[k v]`` tuples (``jepsen.independent``), of the workload
                ``register``
``queue``       Knossos: ``:enqueue``, ``:dequeue`` of ``[k v]`` tuples, of the workload ``queue``
``share``       ``wrackline check -m share --set faults=true``: ``:acquire``, ``:accept``, ``:reject``,
                ``:release``, ``:renew`` and ``:expire`` of the workload ``share``
==============  ============================================================================================

Rows of runner and replicas have no counterpart and are left out; faults are ``:nemesis`` operations of
``kafka``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from wrackline.history.jepsen.exports.common import Keys, Row, rows
from wrackline.history.jepsen.exports.elle import list_append, rw_register
from wrackline.history.jepsen.exports.kafka import kafka
from wrackline.history.jepsen.exports.objects import log, queue, register
from wrackline.history.jepsen.exports.share import share
from wrackline.history.jepsen.text import Operation

__all__ = ["MODELS", "Keys", "kafka", "list_append", "rows"]

MODELS: Mapping[str, Callable[[Iterable[Row], Keys], Iterator[Operation]]] = {
    "kafka": kafka,
    "list-append": list_append,
    "rw-register": rw_register,
    "log": log,
    "register": register,
    "queue": queue,
    "share": share,
}
