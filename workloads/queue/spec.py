"""The settings of the workload ``queue`` in a specification."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from wrackline.plugins.fields import Strict
from wrackline.workloads.log.spec import ClientsSpec
from wrackline.workloads.register.spec import once


class Mix(Strict):
    """Weights of the kinds of operations."""

    send: Annotated[float, Field(ge=0)] = 1
    """Weight of enqueues."""
    dequeue: Annotated[float, Field(ge=0)] = 1
    """Weight of dequeues."""


class QueueSpec(ClientsSpec):
    takes_topics: ClassVar[bool] = True
    name: Literal["queue"] = "queue"
    """Each partition is a FIFO queue."""
    idempotence: bool = True
    """It must be on with acks: all."""
    mix: Mix = Mix()
    """How often each kind of operation is done, compared with the others."""
    senders: Annotated[int, Field(ge=0, le=200)] = 5
    """They enqueue."""
    dequeuers: Annotated[int, Field(ge=0, le=200)] = 4
    """They take turns at one head; each is two processes."""

    @property
    def shares(self) -> dict[str, tuple[int, float]]:
        return {"send": (self.senders, self.mix.send), "dequeue": (self.dequeuers, self.mix.dequeue)}

    @property
    def concurrency(self) -> int:
        """A dequeuer is two logical processes: one takes, one sends markers."""
        return self.senders + 2 * self.dequeuers

    @property
    def reads(self) -> str:
        return "marker"

    @model_validator(mode="after")
    def _enqueues_happen_once(self) -> Self:
        return once(self)
