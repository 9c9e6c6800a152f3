"""Every change of a topic's partitions, from the traces of our broker's controllers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from wrackline.history.store import packed
from wrackline.systems.metadata_changes import NO_LEADER, Change, Chronicle, MetadataLog, UncleanRecovery

SOURCE = "what each controller has traced as committed"
_KINDS = (b'"kind":"ctl_commit"', b'"kind":"recovery"', b'"kind":"md_apply"')


@dataclass(frozen=True, slots=True)
class _Line:
    at_ns: int
    host: str
    kind: str
    fields: Mapping[str, Any]


def chronicle(files: Mapping[str, Path], topic: str) -> Chronicle:
    """``files``: the traces, by host. A record that several controllers committed was committed when the
    first of them did. Raises OSError."""
    lines = [line for host, file in files.items() for line in _lines(host, file)]
    commits: dict[int, _Line] = {}
    for line in sorted(lines, key=lambda line: line.at_ns):
        if line.kind == "ctl_commit":
            commits.setdefault(line.fields["offset"], line)
    log = MetadataLog(topic)
    missing: list[str] = []
    for offset, line in sorted(commits.items()):
        try:
            log.take(line.fields["record"], line.at_ns, line.host, offset)
        except KeyError as error:
            missing.append(f"the record at offset {offset} cannot be understood ({error})")
    missing += _unheard(log.changes, (line for line in lines if line.kind == "md_apply"))
    recoveries = sorted(_recoveries(lines, topic), key=lambda one: one.at_ns)
    return Chronicle(SOURCE, tuple(log.changes), tuple(recoveries), tuple(missing))


def _lines(host: str, file: Path) -> Iterator[_Line]:
    with packed.opened(file) as lines:
        for text in lines:
            if not any(kind in text for kind in _KINDS):
                continue
            try:
                fields = orjson.loads(text)
                yield _Line(int(fields["time_ns"]), host, str(fields["kind"]), fields)
            except (ValueError, KeyError, TypeError):
                continue  # cut short by a power cut or a full disk: what is missing is looked for below


def _unheard(changes: Iterable[Change], applied: Iterable[_Line]) -> Iterator[str]:
    """Brokers say which partition epochs they have learnt of: those that no controller told of are
    missing."""
    told = {(f"{change.topic}-{change.partition}", change.partition_epoch) for change in changes}
    heard = {(str(line.fields["tp"]), int(line.fields["partition_epoch"])) for line in applied}
    names = {name for name, _ in told}
    for name, epoch in sorted(heard - told):
        if name in names:
            yield f"{name}: a broker has learnt of partition epoch {epoch}, of which no controller has told"


def _recoveries(lines: Iterable[_Line], topic: str) -> Iterator[UncleanRecovery]:
    """Yields unclean recoveries: for which partitions leaders are looked for, and who was elected; an
    election that a controller has reported again when it had started again is one."""
    told: set[int | None] = set()
    for line in sorted(lines, key=lambda line: line.at_ns):
        name, _, partition = str(line.fields.get("tp", "")).rpartition("-")
        if line.kind != "recovery" or name != topic:
            continue
        fields = line.fields
        offset = fields.get("offset")
        if offset is not None and offset in told:
            continue
        told.add(offset)
        details = {
            what: fields[what] for what in ("candidates", "missing", "logs", "unheard") if what in fields
        }
        yield UncleanRecovery(
            line.at_ns,
            line.host,
            topic,
            int(partition),
            NO_LEADER if fields["winner"] is None else fields["winner"],
            str(fields["why"]),
            str(fields.get("by", "")),
            details or None,
        )
