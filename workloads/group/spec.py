"""The settings of the workload ``group`` in a specification."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from wrackline.plugins.capabilities import Capability
from wrackline.plugins.fields import MILLISECONDS, Strict
from wrackline.workloads.clients.base import GroupSettings
from wrackline.workloads.clients.settings import PatientClientSettings
from wrackline.workloads.log.spec import ClientsSpec

Every = Annotated[int, Field(ge=0)]
CLASSIC = ("range", "roundrobin", "cooperative-sticky")
CONSUMER = ("uniform", "range")


class Mix(Strict):
    """Weights of the kinds of operations."""

    send: Annotated[float, Field(ge=0)] = 1
    """Weight of sends."""
    poll: Annotated[float, Field(ge=0)] = 2
    """Weight of polls."""


class GroupSpec(ClientsSpec):
    name: Literal["group"] = "group"
    """A consumer group reads what producers send."""
    rate: Annotated[float, Field(ge=0)] = 100
    """Operations per second of all kinds together; 0: as fast as the clients can."""
    idempotence: bool = True
    """Brokers drop what a producer sends again."""
    client: PatientClientSettings = PatientClientSettings()
    """Deadlines and other settings of the clients."""
    mix: Mix = Mix()
    """How often each kind of operation is done, compared with the others."""
    senders: Annotated[int, Field(ge=0, le=200)] = 2
    """Clients that send."""
    in_flight: Annotated[int, Field(ge=1, le=200)] = 16
    """Operations that one sender may have under way at a time, each a logical process of its own."""
    records_per_op: Annotated[int, Field(ge=1, le=1_000)] = 1
    """At most: each send is of one to this many records, to one partition."""
    members: Annotated[int, Field(ge=1, le=100)] = 4
    """Of the group; each is three processes: one reads, two commit."""
    protocol: Literal["classic", "consumer"] = "classic"
    """``group.protocol``; ``consumer`` is that of KIP-848."""
    assignor: Literal["range", "roundrobin", "cooperative-sticky", "uniform"] | None = None
    """How partitions are shared out. classic: ``range`` and ``roundrobin`` are eager (all members give all
    up), ``cooperative-sticky`` is not; the default. consumer: ``uniform``, the default, and ``range``."""
    static_members: bool = False
    """Members keep their place in the group when they come back (``group.instance.id``)."""
    session_timeout_ms: Annotated[int, Field(ge=1_000, le=300_000), MILLISECONDS] = 6_000
    """After so long without a heartbeat a member is put out of its group. In the protocol ``consumer`` the
    brokers' own setting counts."""
    heartbeat_ms: Annotated[int, Field(ge=100, le=100_000), MILLISECONDS] = 1_000
    """How often a member says that it is there."""
    commit_every: Every = 4
    """On average, after so many polls that brought records a member commits; 0: only when partitions are
    taken from it."""
    async_commits: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Share of these commits that are asynchronous."""
    ask_every: Every = 30
    """On average, after so many polls a member asks what its group has committed; 0: never."""
    crash_every: Every = 2_000
    """On average, after so many polls a member crashes: it is gone without leaving its group; 0: never."""
    leave_every: Every = 800
    """On average, after so many polls a member leaves its group; 0: never."""
    away_ms: Annotated[int, Field(ge=0, le=600_000), MILLISECONDS] = 2_000
    """At most: how long it is before another member takes the place of one that left or crashed."""

    @property
    def shares(self) -> dict[str, tuple[int, float]]:
        return {"send": (self.senders * self.in_flight, self.mix.send), "poll": (self.members, self.mix.poll)}

    @property
    def concurrency(self) -> int:
        return self.senders * self.in_flight + 3 * self.members

    @property
    def records_per_send(self) -> int:
        return self.records_per_op

    @property
    def poll_wait_s(self) -> float:
        return self._wait_s(self.members)

    @property
    def needs(self) -> frozenset[Capability]:
        if self.protocol == "consumer":
            return super().needs | {Capability.GROUPS, Capability.CONSUMER_PROTOCOL}
        return super().needs | {Capability.GROUPS}

    @property
    def patience_s(self) -> float:
        """A member that is put out of its group while it leaves it waits for its session to end."""
        return super().patience_s + (self.session_timeout_ms + self.away_ms) / 1e3

    @property
    def rebalances(self) -> Literal["eager", "cooperative", "consumer"]:
        """Returns how partitions change hands: whether their owner gives them up before the next one has
        them."""
        if self.protocol == "consumer":
            return "consumer"
        return "cooperative" if self.assignor in (None, "cooperative-sticky") else "eager"

    @property
    def membership(self) -> GroupSettings:
        return self.taking_part("group", "member")

    def taking_part(self, group: str, instance: str) -> GroupSettings:
        """Returns how one member takes part."""
        usual = "uniform" if self.protocol == "consumer" else "cooperative-sticky"
        return GroupSettings(
            group=group,
            protocol=self.protocol,
            assignor=self.assignor or usual,
            session_timeout_ms=self.session_timeout_ms,
            heartbeat_ms=self.heartbeat_ms,
            instance=instance if self.static_members else "",
        )

    follows: ClassVar[Mapping[str, Callable[[Any], Any]]] = {
        **ClientsSpec.follows,
        "protocol": lambda one: one.protocol if one.assignor in (None, *CLASSIC) else "consumer",
        "heartbeat_ms": lambda one: min(one.heartbeat_ms, one.session_timeout_ms // 2),
        "session_timeout_ms": lambda one: max(one.session_timeout_ms, 2 * one.heartbeat_ms),
    }

    @model_validator(mode="after")
    def _assignor_fits(self) -> Self:
        known = CONSUMER if self.protocol == "consumer" else CLASSIC
        if self.assignor is not None and self.assignor not in known:
            raise ValueError(
                f"assignor {self.assignor} is none of protocol {self.protocol}: take {' or '.join(known)}"
            )
        if self.heartbeat_ms * 2 > self.session_timeout_ms:
            raise ValueError("heartbeat_ms must be at most half of session_timeout_ms")
        return self
