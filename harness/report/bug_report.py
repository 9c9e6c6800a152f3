"""An incident as the maintainers of the system under test want it reported: Markdown that stands alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import yaml

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


def bug_report(files: RunFiles, incident: Mapping[str, Any]) -> str:
    """``incident``: of the run's verdict. Raises OSError."""
    verdict = files.verdict or {}
    result = (group.explanations for group in files.groups if group.incident == incident.get("id"))
    own = list(chain.from_iterable(result))
    sections = (
        ("Versions", _versions(files)),
        ("Configuration", _settings(files)),
        ("Steps to reproduce", _steps(files, incident)),
        (
            "Expected",
            [capital(str(mapping(verdict, "contract").get("promise") or "no record is lost")) + "."],
        ),
        ("Actual", _actual(incident)),
        ("What each node said", _said(files.info, incident)),
        ("The smallest set of operations that shows it", _operations(own)),
        ("How to repeat it", _repeat(files)),
    )
    title = mapping(incident, "gone").get("what") or incident.get("sentence") or "an incident"
    lines = [f"# {capital(_text(title))}"]
    for heading, content in sections:
        lines += ["", f"## {heading}", "", *(list(content) or ["Not on record."])]
    return "\n".join(lines)


def _versions(files: RunFiles) -> Iterator[str]:
    info = files.info
    if info is None:
        yield from _of_specification(files.spec_text or "")
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


def _of_specification(text: str) -> Iterator[str]:
    """All that is known of the system where verdict and report alone were kept."""
    try:
        system = mapping(yaml.safe_load(text), "system")
    except yaml.YAMLError:
        return
    if system:
        version = system.get("version") or system.get("profile") or ""
        yield f"- {_text(system.get('kind'))} {_text(version)}".rstrip()
    if defects := texts(system, "defects"):
        yield f"- with the defects {', '.join(map(_text, defects))}, on purpose"


def _settings(files: RunFiles) -> Iterator[str]:
    if (info := files.info) is not None:
        for topic in info.topics:
            yield (
                f"- topic `{topic.name}`: {plural(topic.partitions, 'partition')}, replication factor "
                f"{topic.replication_factor}, `min.insync.replicas={topic.min_insync_replicas}`"
            )
        yield f"- producers: `acks={info.acks}`, idempotence {'on' if info.idempotence else 'off'}"
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


def _before(info: RunInfo | None) -> Iterator[str]:
    if info is None:
        yield "Start a cluster with the settings above, and clients that write and read."
        return
    nodes = ", ".join(f"{host} (id {node})" for node, host in info.nodes.items())
    yield f"Start the nodes {nodes}." if nodes else "Start the cluster."
    for topic in info.topics:
        yield f"Create the topic `{topic.name}`."
    rate = f"{info.rate:g} operations a second" if info.rate else "as fast as they can"
    yield f"Produce and consume, {rate} in all, until the last step."


def _faults(verdict: Mapping[str, Any], incident: Mapping[str, Any]) -> list[str]:
    """Beginnings and ends of the incident's faults in the order of time."""
    expected = texts(incident, "faults")
    events: list[tuple[int, str]] = []
    for fault in rows(verdict, "faults"):
        if fault.get("id") not in expected:
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
    """Yields the table of operations of the finding that needs fewest; findings whose operations
    contradict each other come before the others."""
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


def _repeat(files: RunFiles) -> Iterator[str]:
    if files.spec_text is None:
        return
    yield "Wrackline does all of these steps with this `spec.yaml`:"
    seed = "" if files.info is None else f" --seed {files.info.seed}"
    yield from ("", "```sh", f"wrackline run spec.yaml{seed}", "```", "")
    yield from ("```yaml", *map(_line, files.spec_text.strip().splitlines()), "```")


def _line(text: str) -> str:
    return printable(text.rstrip()).replace("```", "'''")


def _text(value: object) -> str:
    """Returns the value on one line, without what a terminal or a page would obey."""
    return printable(" ".join(str(value).split())).replace("```", "'''")
