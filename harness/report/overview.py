"""The overview of anomalies: where on the page the findings of each are shown. Each finding has one place,
inside the incident that it is evidence of; those of incidents that are not shown are listed by anomaly."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from wrackline.harness.report.evidence import EvidenceGroup
from wrackline.harness.report.incidents import Incident
from wrackline.harness.report.summary import Anomaly


@dataclass(frozen=True, slots=True)
class Further:
    """Findings of one anomaly that are in none of the incidents shown."""

    anomaly: str
    rows: tuple[Anomaly, ...]
    """What the anomaly means: two rows where partitions differ."""
    groups: tuple[EvidenceGroup, ...]

    @property
    def count(self) -> int:
        return sum(one.group.count for one in self.groups)

    @property
    def shown(self) -> tuple[EvidenceGroup, ...]:
        return tuple(one for one in self.groups if one.items)

    @property
    def hidden(self) -> tuple[int, int]:
        """How many partitions are not shown, and how many findings they have."""
        counts = [one.group.count for one in self.groups if not one.items]
        return len(counts), sum(counts)

    @property
    def anchor(self) -> str:
        return f"further-{self.anomaly}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where on the page findings are."""

    label: str
    anchor: str
    count: int


@dataclass(frozen=True, slots=True)
class Found:
    anomaly: Anomaly
    places: tuple[Place, ...]


def further_of(
    groups: Iterable[EvidenceGroup], incidents: Collection[str], anomalies: Sequence[Anomaly]
) -> tuple[Further, ...]:
    """``incidents``: the ids of those that are shown. ``anomalies``: in their order on the page."""
    by_name: dict[str, list[EvidenceGroup]] = {}
    for one in groups:
        if one.group.incident not in incidents:
            by_name.setdefault(one.group.anomaly, []).append(one)
    names = dict.fromkeys(one.name for one in anomalies if one.name in by_name)
    return tuple(
        Further(name, tuple(one for one in anomalies if one.name == name), tuple(by_name[name]))
        for name in names
    )


def found_of(
    anomalies: Sequence[Anomaly], incidents: Sequence[Incident], further: Sequence[Further]
) -> tuple[Found, ...]:
    """Of each anomaly with findings, where they are."""
    return tuple(Found(one, tuple(_places(one, incidents, further))) for one in anomalies if one.count)


def _places(anomaly: Anomaly, incidents: Sequence[Incident], further: Sequence[Further]) -> Iterator[Place]:
    for incident in incidents:
        for proof in incident.proofs:
            if (proof.anomaly, proof.meaning) == (anomaly.name, anomaly.meaning):
                yield Place(f"incident {incident.number}", proof.anchor, proof.count)
    for one in further:
        if one.anomaly == anomaly.name:
            yield Place("further findings" if incidents else "findings", one.anchor, one.count)
