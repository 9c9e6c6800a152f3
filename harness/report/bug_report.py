"""An incident as the maintainers of the system under test want it reported: Markdown that stands alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from wrackline.checkers.explain.model import Explanation
from wrackline.checkers.verdict.incidents.sentences import capital
from wrackline.harness.report.read.files import RunFiles
from wrackline.history.json_values import mapping, rows, texts, whole
from wrackline.history.model import RunInfo
from wrackline.history.wording import plural, printable, seconds

_GIVEN: Final = "# given"
"""Kafka's effective configurations begin with it; what follows "# by default" nobody has set."""
_OF_ONE_NODE: Final = (
    "node.id",
    "broker.id",
    "listeners",
    "advertised.listeners",
    "process.roles",
    "broker.rack",
)
_OF_THE_SYSTEM: Final = ("system.", "topic.", "workload.")
_BEGIN: Final[Mapping[str, str]] = {
    "partition": "Cut {who} off from the other nodes",
    "kill": "Kill the process on {who} with SIGKILL",
    "power-cut": "Cut the power of {who}, so that what its disk had not synced is lost",
    "pause": "Stop the process on {who} with SIGSTOP",
    "restart": "Stop the process on {who} with SIGTERM",
}
_END: Final[Mapping[str, str]] = {
    "partition": "Connect {who} with the other nodes again",
    "kill": "Start the process on {who} again",
    "power-cut": "Power {who} on, and start its process",
    "pause": "Let the process on {who} go on with SIGCONT",
    "restart": "Start the process on {who} again",
}


def bug_report(
    files: RunFiles,
    incident: Mapping[str, Any],
    own: Sequence[Explanation],
    changed: Sequence[str],
    system: str,
) -> str:
    """``incident``: of the verdict. ``own``: what explains its findings. ``changed``: the settings of the
    specification that differ from their defaults, ``key: value`` each. ``system``: with its version, as the
    specification has it. Raises OSError."""
    verdict = files.verdict or {}
    sections = (
        ("Versions", _versions(files.info, system)),
        ("Settings that differ from the defaults", _settings(files, changed)),
        ("Steps to reproduce", _steps(files, incident)),
        (
            "Expected",
            [capital(str(mapping(verdict, "contract").get("promise") or "no record is lost")) + "."],
        ),
        ("Actual", _actual(incident)),
        ("What each node said", _said(files.info, incident)),
        ("The smallest set of operations that shows it", _operations(own)),
    )
    lines = [f"# {_text(incident.get('sentence') or 'an incident')}"]
    for heading, content in sections:
        lines += ["", f"## {heading}", "", *(list(content) or ["Not on record."])]
    return "\n".join(lines)


def _versions(info: RunInfo | None, system: str) -> Iterator[str]:
    if info is None:
        yield from [f"- {system}"] if system else []
        return
    if info.system_kind == "apache-kafka":
        yield f"- Apache Kafka {info.system_version}"
    else:
        yield f"- {info.system_kind or info.system} {info.system_version or info.profile}".rstrip()
    if info.defects:
        yield f"- with the defects {', '.join(info.defects)}, on purpose"
    if info.features:
        yield "- finalized features: " + ", ".join(
            f"{name}={level}" for name, level in sorted(info.features.items())
        )
    if info.client:
        yield f"- clients: {info.client.get('library', '')} {info.client.get('version', '')}".rstrip()
    yield f"- observed by Wrackline {info.harness_version}, run {info.test_id}"


def _settings(files: RunFiles, changed: Sequence[str]) -> Iterator[str]:
    yield from (f"- `{_text(line)}`" for line in changed if line.startswith(_OF_THE_SYSTEM))
    files_of_nodes = files.directory.glob("nodes/*/effective.properties")
    given = [set(_given(one.read_text(errors="replace"))) for one in files_of_nodes]
    common = (
        sorted(line for line in set().union(*given) if all(line in one for one in given)) if given else []
    )
    if shown := [line for line in common if line.partition("=")[0] not in _OF_ONE_NODE]:
        yield from ("", "Every node was given:", "", "```properties", *shown, "```")


def _given(text: str) -> Iterator[str]:
    lines = iter(text.splitlines())
    if next(lines, "") == _GIVEN:
        for line in lines:
            if line.startswith("#"):
                return
            if line:
                yield line


def _steps(files: RunFiles, incident: Mapping[str, Any]) -> Iterator[str]:
    steps = [*_before(files.info), *_faults(files.verdict or {}, incident)]
    steps.append(
        "Wait until every replica is in the ISR, and read each partition from its beginning to its end."
    )
    yield from (f"{number}. {step}" for number, step in enumerate(steps, 1))
    if files.info is not None and files.spec_text is not None:
        yield ""
        yield (
            "Wrackline does all of it by `wrackline run spec.yaml --seed "
            f"{files.info.seed}`, with the `spec.yaml` of the run."
        )


def _before(info: RunInfo | None) -> Iterator[str]:
    if info is None:
        yield "Start a cluster with the settings above, and clients that write and read."
        return
    nodes = ", ".join(f"{host} (id {node})" for node, host in info.nodes.items())
    yield f"Start the nodes {nodes}." if nodes else "Start the cluster."
    for topic in info.topics:
        yield (
            f"Create the topic `{topic.name}`: {plural(topic.partitions, 'partition')}, replication factor "
            f"{topic.replication_factor}, `min.insync.replicas={topic.min_insync_replicas}`."
        )
    rate = f"{info.rate:g} operations a second" if info.rate else "as fast as they can"
    idempotence = "with" if info.idempotence else "without"
    yield (
        f"Produce with `acks={info.acks}`, {idempotence} idempotence, and consume, {rate} in all, until the "
        "last step."
    )


def _faults(verdict: Mapping[str, Any], incident: Mapping[str, Any]) -> list[str]:
    """Beginnings and ends of the incident's faults in the order of time."""
    wanted = texts(incident, "faults")
    events: list[tuple[int, str]] = []
    for fault in rows(verdict, "faults"):
        if fault.get("id") not in wanted:
            continue
        name, proof = str(fault.get("fault")), str(fault.get("proof") or "")
        who = " and ".join(texts(fault, "targets")) or "a node"
        role = f" ({_text(fault['role'])})" if fault.get("role") else ""
        seen = f" Seen: {_text(proof)}." if proof else ""
        begin = _BEGIN.get(name, f"Begin {name} on {{who}}").format(who=who + role)
        end = _END.get(name, f"End {name} on {{who}}").format(who=who)
        for key, step in (("active_ns", f"{begin}.{seen}"), ("undo_ns", f"{end}.")):
            if (at := whole(fault, key)) is not None:
                events.append((at, f"At {seconds(at)}: {step}"))
    return [step for _, step in sorted(events)]


def _actual(incident: Mapping[str, Any]) -> Iterator[str]:
    yield f"{capital(_text(incident.get('sentence') or ''))}."
    if told := texts(incident, "mechanism"):
        yield ""
        yield from (f"- {_text(line)}" for line in told)


def _said(info: RunInfo | None, incident: Mapping[str, Any]) -> Iterator[str]:
    ids = {} if info is None else {host: node for node, host in info.nodes.items()}
    by_host: dict[str, list[str]] = {}
    for line in rows(incident, "lines"):
        file = str(line.get("file"))
        host = file.split("/")[1] if file.count("/") > 1 else file
        place = f"{file}:{line.get('number')}"
        by_host.setdefault(host, []).append(f"{place}: {_text(line.get('text') or '')}")
    for host, said in by_host.items():
        node = f", node {ids[host]}" if host in ids else ""
        yield from (f"{host}{node}:", "", "```text", *said, "```", "")


def _operations(own: Sequence[Explanation]) -> Iterator[str]:
    """Of the finding that needs fewest, those that contradict each other before those that do not."""
    told = [one for one in own if one.operations]
    if not told:
        return
    one = min(told, key=lambda each: (not each.edges, len(each.operations)))
    yield f"{capital(_text(one.finding.sentence))}"
    yield from ("", "| | process | operation | invoked | completed | outcome |", "|---|---|---|---|---|---|")
    for number, op in enumerate(one.operations, 1):
        outcome = f"{op.outcome} {op.error}" if op.error else op.outcome
        cells = (op.who, f"{op.name} {op.what}", seconds(op.begin_ns), seconds(op.end_ns), outcome)
        yield f"| {number} | " + " | ".join(_text(cell).replace("|", "\\|") for cell in cells) + " |"
    yield ""
    yield from (f"- {_text(edge.sentence)}: {_text(edge.conclusion)}." for edge in one.edges)
    if not one.edges:
        yield from (f"- {_text(fact)}." for fact in one.facts)


def _text(value: object) -> str:
    """On one line, without what a terminal or a page would obey."""
    return printable(" ".join(str(value).split())).replace("```", "'''")
