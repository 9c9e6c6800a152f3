"""The settings of the workload ``register`` in a specification."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self, TypeVar

from pydantic import Field, model_validator

from wrackline.plugins.fields import Strict
from wrackline.workloads.log.spec import ClientsSpec

S = TypeVar("S", bound=ClientsSpec)


class Mix(Strict):
    """Weights of the kinds of operations."""

    send: Annotated[float, Field(ge=0)] = 1
    """Weight of writes."""
    read: Annotated[float, Field(ge=0)] = 1
    """Weight of reads."""


class RegisterSpec(ClientsSpec):
    takes_topics: ClassVar[bool] = True
    name: Literal["register"] = "register"
    """Each partition is a register."""
    idempotence: bool = True
    """It must be on with acks: all."""
    mix: Mix = Mix()
    """How often each kind of operation is done, compared with the others."""
    senders: Annotated[int, Field(ge=0, le=200)] = 5
    """They write."""
    readers: Annotated[int, Field(ge=0, le=200)] = 5
    """They read; each is two processes where it reads by marker."""
    read_by: Literal["marker", "end"] = "marker"
    """How a read knows what the last write is. ``marker``: it sends a record of its own with the workload's
    acks and reads what is before it: a leader that was replaced cannot acknowledge it. ``end``: it asks the
    leader for the end offset, which one that was replaced may still answer."""

    @property
    def shares(self) -> dict[str, tuple[int, float]]:
        return {"send": (self.senders, self.mix.send), "read": (self.readers, self.mix.read)}

    @property
    def concurrency(self) -> int:
        """A reader that marks is two logical processes: one reads, one sends."""
        return self.senders + self.readers * (2 if self.read_by == "marker" else 1)

    @property
    def reads(self) -> str:
        return self.read_by

    @model_validator(mode="after")
    def _writes_happen_once(self) -> Self:
        return once(self)


def once(spec: S) -> S:
    """Refuses what could make a value appear twice, or leave its place unknown."""
    if spec.acks == 0:
        raise ValueError("this workload needs acks: 1 or all: without acks no write is known to be done")
    if spec.acks == "all" and not spec.idempotence:
        raise ValueError(
            "acks: all needs idempotence: true here: the client sends again what a replaced leader refused, "
            "and a value "
            "that is written twice can mean anything"
        )
    if spec.client.retries and not spec.idempotence:
        raise ValueError("client.retries without idempotence may write a value twice: leave them at 0")
    return spec
