"""The workload ``txn``: workers that make transactions, and pollers that read outside of them."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from wrackline.workloads.log.processes import Context, Poller, Process, catch_all
from wrackline.workloads.log.workload import Workload
from wrackline.workloads.txn.spec import TxnSpec
from wrackline.workloads.txn.worker import Worker

PROBE_S = 30.0
"""How long the end of the workload waits for the version of EndTxn."""


class TxnWorkload(Workload):
    """Workers, each with a producer and a consumer of its own, and pollers."""

    settings = TxnSpec

    def processes(self, context: Context) -> list[Process]:
        spec = context.spec
        assert isinstance(spec, TxnSpec)
        self._probed = f"wrackline-{context.tag.hex()}-probe"
        self._workers = [Worker(context, slot, spec) for slot in range(spec.workers)]
        pollers = [Poller(context, 3 * spec.workers + number) for number in range(spec.pollers)]
        self._probe = threading.Thread(target=self._learn, name="end-txn-version", daemon=True)
        return [*self._workers, *pollers]

    @property
    def groups(self) -> Sequence[str]:
        return [worker.group for worker in self._workers]

    def topic_of(self, group: str) -> str:
        return next(worker.source for worker in self._workers if worker.group == group)

    @property
    def groups_made(self) -> Sequence[str]:
        return [*self.groups, self._probed]

    @property
    def transactional_ids(self) -> Sequence[str]:
        return [worker.transactional_id for worker in self._workers]

    def start(self) -> None:
        super().start()
        self._probe.start()

    def stop(self, *, timeout_s: float) -> list[str]:
        stuck = super().stop(timeout_s=timeout_s)
        self._probe.join(PROBE_S)
        return stuck

    def _learn(self) -> None:
        """Records which version of EndTxn client and cluster agree on: what a late request can do depends on
        it."""
        context = self._context
        with catch_all(context, "the version of EndTxn"), context.enter():
            version = context.library.end_txn_version(
                context.bootstrap, context.spec, context.topic, self._probed
            )
            if version is not None:
                context.recorder.learn(client={"end_txn_version": version})
