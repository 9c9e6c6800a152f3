"""A workload: few write, and many read."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from wrackline.api import ClientsSpec, Context, Poller, Process, Sender, Workload


class ManyReadersSpec(ClientsSpec):
    """What a specification says of it."""

    name: Literal["many-readers"] = "many-readers"
    """Few write, and many read."""
    writers: Annotated[int, Field(ge=1, le=50)] = 2
    """Clients that send."""
    readers: Annotated[int, Field(ge=1, le=200)] = 6
    """Consumers, each of all partitions."""

    @property
    def shares(self) -> dict[str, tuple[int, float]]:
        return {"send": (self.writers, 1), "poll": (self.readers, 2)}


class ManyReadersWorkload(Workload):
    """Threads for the processes of `ManyReadersSpec.shares`; their ids count from 0."""

    settings = ManyReadersSpec

    def processes(self, context: Context) -> list[Process]:
        spec = context.spec
        assert isinstance(spec, ManyReadersSpec)
        writers = [Sender(context, slot) for slot in range(spec.writers)]
        return [*writers, *(Poller(context, spec.writers + number) for number in range(spec.readers))]
