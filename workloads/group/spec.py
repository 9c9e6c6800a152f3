"""The settings of the workload ``group`` in a specification."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from wrackline.plugins.acls import Acls, merged
from wrackline.plugins.capabilities import Capability
from wrackline.plugins.fields import MILLISECONDS, Strict
from wrackline.workloads.clients.base import GroupSettings
from wrackline.workloads.clients.settings import PatientClientSettings
from wrackline.workloads.log.spec import GROUP_ACLS, DeletingSpec

Every = Annotated[int, Field(ge=0)]
Protocol = Literal["classic", "consumer", "mixed"]
Assignor = Literal["range", "roundrobin", "cooperative-sticky", "uniform"]
Members = Annotated[int, Field(ge=1, le=100)]
GroupName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")]
CLASSIC = ("range", "roundrobin", "cooperative-sticky")
CONSUMER = ("uniform", "range")
CONSUMER_SESSION_S = 45.0
"""``group.consumer.session.timeout.ms``, the brokers' own setting, by default."""


class Mix(Strict):
    """Weights of the kinds of operations."""

    send: Annotated[float, Field(ge=0)] = 1
    """Weight of sends."""
    poll: Annotated[float, Field(ge=0)] = 2
    """Weight of polls."""
    delete: Annotated[float, Field(ge=0)] = 0
    """Weight of deletions (DeleteRecords)."""


class OneGroup(Strict):
    """One of several groups; what it does not say is as the workload says it."""

    members: Members | None = None
    """Of this group."""
    protocol: Protocol | None = None
    """``group.protocol`` of its members."""
    assignor: Assignor | None = None
    """How its partitions are shared out; where it has a protocol of its own, the default of that."""
    static_members: bool | None = None
    """Its members keep their place in the group when they come back."""


class GroupSpec(DeletingSpec):
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
    auto_offset_reset: Annotated[
        str, Field(pattern=r"^(none|earliest|latest|by_duration:P[0-9DTHMS.]+)$")
    ] = "earliest"
    """``auto.offset.reset``: where a member goes on whose position was deleted, or whose group has committed
    nothing."""
    members: Members = 4
    """Of the group; each is three processes: one reads, two commit."""
    groups: Annotated[dict[GroupName, OneGroup], Field(max_length=20)] = Field(default_factory=dict)
    """Several groups, by name, which all read the topic; empty: there is one."""
    protocol: Protocol = "classic"
    """``group.protocol``; ``consumer`` is that of KIP-848. ``mixed``: each member that joins draws one of
    both, so the group changes from one to the other and back."""
    assignor: Assignor | None = None
    """How partitions are shared out. classic: ``range`` and ``roundrobin`` are eager (all members give all
    up), ``cooperative-sticky`` is not; the default. consumer: ``uniform``, the default, and ``range``. mixed:
    ``range``, which both have."""
    isolation_level: Literal["read_committed", "read_uncommitted"] = "read_uncommitted"
    """What consumers ask for. At ``read_committed`` librdkafka and the watchers ask for stable offsets
    (KIP-447), as the Java client always does."""
    watchers: Annotated[int, Field(ge=0, le=20)] = 0
    """Processes that ask brokers themselves, each every n-th one, what the groups have committed: it is then
    certain which of them answered."""
    watch_every_ms: Annotated[int, Field(ge=10, le=60_000), MILLISECONDS] = 100
    """How long a watcher waits before it asks all of its brokers again."""
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
        sending, polling = self.senders * self.in_flight, self.all_members
        usual = {"send": (sending, self.mix.send), "poll": (polling, self.mix.poll)}
        return usual | self.deleting(self.mix.delete)

    @property
    def concurrency(self) -> int:
        deleting, _ = self.shares.get("delete", (0, 0))
        return self.senders * self.in_flight + 3 * self.all_members + self.watchers + deleting

    @property
    def by_group(self) -> Mapping[str, GroupSpec]:
        """Returns the settings of each group by its name, as if there were no other; of the only one: ""."""
        if not self.groups:
            return {"": self}
        return {name: self._of(one) for name, one in self.groups.items()}

    def _of(self, one: OneGroup) -> GroupSpec:
        own = one.model_dump(exclude_none=True)
        if "protocol" in own:
            own.setdefault("assignor", None)
        return self.model_copy(update={**own, "groups": {}})

    @property
    def plaintext_only(self) -> str:
        return "watchers" if self.watchers else ""

    @property
    def group_names(self) -> Collection[str]:
        return self.groups

    @property
    def all_members(self) -> int:
        return sum(one.members for one in self.by_group.values())

    @property
    def records_per_send(self) -> int:
        return self.records_per_op

    @property
    def poll_wait_s(self) -> float:
        return self._wait_s(self.all_members)

    @property
    def needs(self) -> frozenset[Capability]:
        by_epochs = any(one.protocol != "classic" for one in self.by_group.values())
        further = {Capability.CONSUMER_PROTOCOL: by_epochs, Capability.DELETE_RECORDS: bool(self.mix.delete)}
        return super().needs | {Capability.GROUPS, *(one for one, needed in further.items() if needed)}

    @property
    def acls(self) -> Acls:
        return merged((super().acls, GROUP_ACLS))

    @property
    def longest_session_s(self) -> float:
        return CONSUMER_SESSION_S if self.protocol == "consumer" else self.session_timeout_ms / 1e3

    @property
    def patience_s(self) -> float:
        """A member that is put out of its group while it leaves it waits for its session to end."""
        return super().patience_s + (self.session_timeout_ms + self.away_ms) / 1e3

    @property
    def isolation(self) -> str:
        return "" if self.isolation_level == "read_uncommitted" else self.isolation_level

    @property
    def membership(self) -> GroupSettings:
        protocols = {one.protocol for one in self.by_group.values()}
        newest = "classic" if protocols == {"classic"} else "consumer"
        return self.model_copy(update={"protocol": newest}).taking_part("group", "member")

    def of_member(self, draw: Callable[[int], int]) -> GroupSpec:
        """Returns the settings of a member that joins. ``draw``: chooses one of so many."""
        if self.protocol != "mixed":
            return self
        return self.model_copy(update={"protocol": ("classic", "consumer")[draw(2)], "assignor": "range"})

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

    @property
    def rebalances(self) -> Literal["eager", "cooperative", "consumer"]:
        """Returns how partitions change hands: whether their owner gives them up before the next one has
        them."""
        if self.protocol == "consumer":
            return "consumer"
        return "cooperative" if self.assignor in (None, "cooperative-sticky") else "eager"

    follows: ClassVar[Mapping[str, Callable[[Any], Any]]] = {
        **DeletingSpec.follows,
        "protocol": lambda one: one.protocol if one.assignor in (None, *CLASSIC) else "consumer",
        "heartbeat_ms": lambda one: min(one.heartbeat_ms, one.session_timeout_ms // 2),
        "session_timeout_ms": lambda one: max(one.session_timeout_ms, 2 * one.heartbeat_ms),
    }

    @model_validator(mode="after")
    def _assignor_fits(self) -> Self:
        for name, one in self.by_group.items():
            fitting = {"consumer": CONSUMER, "classic": CLASSIC, "mixed": ("range",)}[one.protocol]
            if one.assignor is not None and one.assignor not in fitting:
                where = f"groups.{name}: " if name else ""
                raise ValueError(
                    f"{where}assignor {one.assignor} is none of protocol {one.protocol}: "
                    f"take {' or '.join(fitting)}"
                )
        if self.heartbeat_ms * 2 > self.session_timeout_ms:
            raise ValueError("heartbeat_ms must be at most half of session_timeout_ms")
        return self
