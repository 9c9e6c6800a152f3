"""Verdicts as JUnit XML, which Jenkins and GitLab read: a suite for each run, a case for its having been made
and judged, one for each incident that breaks its contract, one for each checker and each condition.

An incident that breaks the contract, an expected anomaly that was not found, and a condition that does not
hold are failures. A checker to which the contract does not apply is skipped. What one found is its output,
and a failure only in a run that was judged when there were no incidents yet. A run without a verdict, or one
that failed because of its hosts, is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from wrackline.checkers.findings import Meaning, Verdict
from wrackline.checkers.verdict.incidents.sentences import capital
from wrackline.harness.report.read.files import (
    RunFiles,
    mapping,
    numeric,
    read_run,
    replace_file,
    rows,
    texts,
    whole,
)
from wrackline.harness.report.summary import run_name
from wrackline.history.wording import number, partition_label, printable

_TEXT_LIMIT = 8_000
_SENTENCES = 3
"""Of each anomaly of an incident."""
MADE = "made and judged"


def junit(
    run_dirs: Sequence[Path],
    path: Path,
    *,
    names: Mapping[Path, str] | None = None,
    without: Mapping[str, str] | None = None,
    good: Mapping[Path, bool | None] | None = None,
) -> Path:
    """Write one JUnit file for several runs. ``names``: what runs are called there; by default as their
    specifications are. ``without``: names of runs that left no folder, and why; a run that nobody tried has
    no reason. ``good``: whether runs came out as they should; the incidents of one that had to break its
    contract are no failures, and that it kept it is one. Raises ReportError when a folder is no run."""
    root = ElementTree.Element("testsuites", {"name": "wrackline"})
    seen: Counter[str] = Counter()
    for run_dir in run_dirs:
        files = read_run(run_dir)
        name = (names or {}).get(run_dir) or run_name(files)
        seen[name] += 1
        name = name if seen[name] == 1 else f"{name} ({seen[name]})"
        root.append(_suite(files, name, (good or {}).get(run_dir)))
    for name, why in (without or {}).items():
        root.append(_suite_without_run(name, why))
    _count(root)
    ElementTree.indent(root)
    return replace_file(path, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _suite(files: RunFiles, name: str, is_good: bool | None) -> ElementTree.Element:
    """The suite of one run. It is named after the specification, since a build server follows a case from run
    to run by its name; the run's own id is a property."""
    suite = ElementTree.Element("testsuite", {"name": printable(name)})
    if files.info is not None:
        suite.set("timestamp", printable(files.info.started_at).removesuffix("Z").split("+")[0])
        properties = ElementTree.SubElement(suite, "properties")
        facts = {"run": files.info.test_id} | {
            key: str(getattr(files.info, key))
            for key in ("name", "seed", "system", "profile", "workload", "acks")
        }
        for key, value in facts.items():
            ElementTree.SubElement(properties, "property", {"name": key, "value": printable(value)})
    verdict = files.verdict
    _made_case(suite, name, files, is_good)
    failures = _incident_cases(suite, name, files, is_expected=bool(is_good))
    for row in rows(verdict, "anomalies"):
        _anomaly_case(suite, name, row, files, failures, is_expected=bool(is_good))
    for row in rows(verdict, "conditions"):
        case = _case(suite, f"{name}.conditions", str(row.get("name", "?")))
        if row.get("ok") is not True:
            detail = str(row.get("detail") or "")
            _outcome(case, "failure", "the condition does not hold", detail, "inconclusive")
    _count(suite)
    return suite


def _suite_without_run(name: str, why: str) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", {"name": printable(name)})
    case = _case(suite, name, MADE)
    if why:
        _outcome(case, "error", why, why, "infrastructure")
    else:
        ElementTree.SubElement(case, "skipped").set("message", "not made")
    _count(suite)
    return suite


def _count(suites: ElementTree.Element) -> None:
    """Sets in a suite, or in all of them, how many cases of each kind there are, and their time."""
    cases = list(suites.iter("testcase"))
    suites.set("tests", str(len(cases)))
    for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suites.set(key, str(sum(len(case.findall(tag)) for case in cases)))
    suites.set("time", f"{sum(float(case.get('time', '0')) for case in cases):.3f}")


def _made_case(suite: ElementTree.Element, name: str, files: RunFiles, is_good: bool | None) -> None:
    """Adds the case that says whether the run was made and judged, and how long both took. Checkers and
    conditions have no time of their own: they look at the same run together."""
    verdict = files.verdict
    case = _case(suite, name, MADE)
    ends = [numeric(phase, "end_ns") or 0 for phase in rows(files.metrics, "phases")]
    spent = max(ends, default=0) / 1e9 + (numeric(mapping(verdict, "engine"), "seconds") or 0)
    case.set("time", f"{spent:.3f}")
    if verdict is None:
        why = next((gap.why for gap in files.gaps if gap.what == "verdict.json"), "not readable")
        _outcome(case, "error", "the run has no verdict", f"verdict.json: {why}", "not judged")
    elif verdict.get("verdict") == Verdict.INFRASTRUCTURE:
        reasons, headline = "\n".join(texts(verdict, "reasons")), verdict.get("headline")
        _outcome(case, "error", str(headline or "infrastructure failed"), reasons, "infrastructure")
    elif verdict.get("verdict") == Verdict.PASS and is_good is False:
        _outcome(case, "failure", "the specification expects a violation", "", "not reproduced")


def _incident_cases(
    suite: ElementTree.Element, name: str, files: RunFiles, *, is_expected: bool
) -> dict[str, str]:
    """Adds a case for each incident that breaks the contract; returns incident id -> name of the case:
    after the partition and the anomalies, so that a build server knows it again in the next run. Incidents
    that would be called the same have numbers."""
    failures: dict[str, str] = {}
    faults = {str(row.get("id")): row for row in rows(files.verdict, "faults")}
    used: Counter[str] = Counter()
    broken = [row for row in rows(files.verdict, "incidents") if row.get("meaning") == Meaning.VIOLATION]
    for row in broken:
        anomalies = rows(row, "anomalies")
        names = [str(one.get("anomaly")) for one in anomalies if one.get("meaning") == Meaning.VIOLATION]
        where = partition_label(row.get("topic"), whole(row, "partition")) if row.get("topic") else "the run"
        title = f"{', '.join(dict.fromkeys(names))} in {where}"
        used[title] += 1
        title = title if used[title] == 1 else f"{title} ({used[title]})"
        failures[str(row.get("id"))] = title
        case = _case(suite, f"{name}.incidents", title)
        said = [*texts(row, "mechanism")]
        said += [f"fault {one}: {_fault(faults[one])}" for one in texts(row, "faults") if one in faults]
        for one in anomalies:
            aside = "" if one.get("meaning") == row.get("meaning") else " by itself"
            count = number(whole(one, "count") or 0)
            said.append(f"{count} × {one.get('anomaly')}, {one.get('meaning')}{aside}")
            said += [f"  {sentence}" for sentence in _sentences(row.get("id"), one.get("anomaly"), files)]
        said += [
            f"{line.get('file')}:{line.get('number')}: {line.get('text')}" for line in rows(row, "lines")
        ]
        _broken(case, capital(str(row.get("sentence"))), "\n".join(said), is_expected=is_expected)
    more = (whole(mapping(files.verdict, "incident_counts"), Meaning.VIOLATION) or 0) - len(broken)
    if more > 0:
        case = _case(suite, f"{name}.incidents", "further incidents")
        _broken(case, f"{number(more)} more incidents break the contract", "", is_expected=is_expected)
    return failures


def _broken(case: ElementTree.Element, message: str, body: str, *, is_expected: bool) -> None:
    """Reports a broken contract as a failure; for a run that must break its contract it is the output of
    the case."""
    if is_expected:
        text = f"as expected: {message}\n{body}"
        ElementTree.SubElement(case, "system-out").text = printable(text, _TEXT_LIMIT)
    else:
        _outcome(case, "failure", message, body, "violation")


def _sentences(incident: object, anomaly: object, files: RunFiles) -> list[str]:
    """Returns the sentences of the first findings of an anomaly that are evidence of the incident."""
    own = (group for group in files.groups if (group.incident, group.anomaly) == (incident, anomaly))
    return [one.finding.sentence for group in own for one in group.explanations][:_SENTENCES]


def _fault(row: Mapping[str, Any]) -> str:
    begin = numeric(row, "begin_ns")
    since = "" if begin is None else f" at {begin / 1e9:,.1f} s"
    return f"{row.get('fault')} of {', '.join(texts(row, 'targets')) or '?'}{since}"


def _anomaly_case(
    suite: ElementTree.Element,
    name: str,
    row: Mapping[str, Any],
    files: RunFiles,
    failures: Mapping[str, str],
    *,
    is_expected: bool,
) -> None:
    """``failures``: as ``_incident_cases`` has them; what is evidence of these is not told again."""
    anomaly, meaning = (str(row.get(key, "?")) for key in ("anomaly", "meaning"))
    count = whole(row, "count") or 0
    case = _case(suite, f"{name}.anomalies", anomaly)
    why = str(row.get("why") or "")
    if meaning == Meaning.NOT_APPLICABLE:
        skipped = ElementTree.SubElement(case, "skipped")
        skipped.set("message", printable(why or "does not apply to this configuration", 500))
    elif meaning == Meaning.VIOLATION and count and "incidents" not in (files.verdict or {}):
        proof = _proof(anomaly, files, failures)
        _broken(case, f"{number(count)} × {anomaly}: {why}", proof, is_expected=is_expected)
    elif meaning == Meaning.EXPECTED and not count:
        _outcome(case, "failure", f"{anomaly} was expected and not found", why, "not reproduced")
    elif count:
        output = f"{number(count)} × {anomaly}, {meaning}: {why}\n{_proof(anomaly, files, failures)}"
        ElementTree.SubElement(case, "system-out").text = printable(output, _TEXT_LIMIT)


def _proof(anomaly: str, files: RunFiles, failures: Mapping[str, str]) -> str:
    lines = []
    for group in files.groups:
        failure = failures.get(group.incident or "")
        if group.anomaly == anomaly and failure:
            verb = "is" if group.count == 1 else "are"
            lines.append(f"{number(group.count)} of them {verb} evidence of the incident {failure}")
        elif group.anomaly == anomaly:
            sentences = [one.finding.sentence for one in group.explanations[:5]]
            lines += sentences
            if group.count > len(sentences):
                more, where = group.count - len(sentences), partition_label(group.topic, group.partition)
                lines.append(f"... and {number(more)} more in {where} (findings.parquet)")
    return "\n".join(lines)


def _case(suite: ElementTree.Element, group: str, name: str) -> ElementTree.Element:
    attributes = {"classname": printable(group), "name": printable(name, 300), "time": "0"}
    return ElementTree.SubElement(suite, "testcase", attributes)


def _outcome(case: ElementTree.Element, tag: str, message: str, body: str, kind: str) -> None:
    element = ElementTree.SubElement(case, tag, {"message": printable(message, 500), "type": kind})
    element.text = printable(body, _TEXT_LIMIT)
