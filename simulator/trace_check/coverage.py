"""The invariants that a trace of real brokers decides, and why not the others."""

from __future__ import annotations

from collections.abc import Mapping

_QUORUM = "the traces have no lines for what each controller writes to its own metadata log, or is asked"
_ROLES = "of each role as a voter comes to it"
FETCHERS = "the traces do not tell when a fetcher gives a partition up"
UNDECIDED: Mapping[str, str] = {
    "I06": "the traces have no lines for what a broker appends to its copy of the metadata log",
    "I15": "the traces have no lines for the epoch caches",
    "I16": FETCHERS,
    **dict.fromkeys((f"Q{number:02}" for number in range(1, 12) if number not in {1, 5, 8}), _QUORUM),
}
PARTLY: Mapping[str, str] = {
    "I05": "not of a leader that ends before it writes another line",
    "I11": "of registrations only: the traces do not tell which request a controller has answered",
    "Q01": _ROLES,
    "Q05": _ROLES,
    "Q08": _ROLES,
    "I20": "not whether a broker that deletes a log has learnt of a set without itself",
}
"""What of them is not decided."""

_NO_TRACE = "these brokers write no trace"
_NO_REPLICAS = f"{_NO_TRACE}, so what a replica had at some moment of the run is not known"
WRITTEN_UNDECIDED: Mapping[str, str] = {
    "I01": _NO_REPLICAS,
    "I04": _NO_REPLICAS,
    "I05": f"{_NO_TRACE}: what a leader takes for its maximal ISR is in its memory alone",
    "I06": "the copies of the metadata log that brokers have are not collected",
    "I07": f"{_NO_TRACE} of acknowledgements: the judge's own check is lost-write",
    "I08": f"{_NO_TRACE} of the fetches with which a follower shows that it is complete",
    "I09": "Apache Kafka keeps the last leader alone as LastKnownELR",
    "I11": "who registered in which epoch is not read",
    "I16": f"{_NO_TRACE} of fetchers",
    "I17": _NO_REPLICAS,
    "I18": _NO_REPLICAS,
    "I19": _NO_REPLICAS,
    "I20": "what a reassignment adds and removes, and when a log was deleted, is not read",
    "I23": f"{_NO_TRACE} of flushes",
    **dict.fromkeys((f"Q{number:02}" for number in range(1, 15)), _QUORUM),
}
"""Which are not asked of a cluster that writes no trace."""
WRITTEN_PARTLY: Mapping[str, str] = {
    "I02": "of the ISR at the end of the run, by the checkpoints of high watermarks",
    "I03": "at the end of the run, below the checkpoints of high watermarks",
    "I10": "at the end of the run, of the checkpoints",
    "I12": "of the registrations, not of what each replica has heard",
    "I13": "of the registrations, and of the logs at the end of the run",
    "I14": "not whether a member is fenced or shutting down; nothing of the ELR where MinISR has changed",
    "I15": "at the end of the run, of the files",
}
QUORUM_PARTLY: Mapping[str, str] = {
    "Q01": "of the leaders that have written down that they lead",
    "Q05": "of the batches in each controller's log",
    "Q12": "of the sets that are in the logs at the end of the run",
    "Q13": "of the logs that have reached the newest epoch",
    "Q14": "of the leaders that have written down that they lead",
}
"""What of the quorum's rules the logs of its controllers decide."""
