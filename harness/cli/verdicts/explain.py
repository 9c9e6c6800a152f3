"""``wrackline explain``: why a finding is a contradiction, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
from rich.table import Column

from wrackline.checkers.explain.model import Explanation, Explanations, list_to_json
from wrackline.checkers.findings import Meaning
from wrackline.checkers.verdict.incidents.sentences import in_full
from wrackline.harness.cli.options import WrongInput, need_verdict, output_option, results_option
from wrackline.harness.run import results as stored
from wrackline.harness.run.judge import read_verdict
from wrackline.harness.screen import lines, table
from wrackline.history import HistoryError, read_info
from wrackline.history.json_values import rows
from wrackline.history.wording import labels_of, number, partition_label, seconds, value_label

_WIDTH: Final = 200
_FAULTS: Final = 6
FINDINGS: Final = "findings.parquet"


@click.command("explain")
@click.argument("name", metavar="RUN")
@click.argument("wanted", required=False, metavar="[INCIDENT|ANOMALY|ANCHOR]")
@results_option
@output_option("a list of explanations, as explanations.json has them.")
@click.option(
    "--bug-report",
    "as_report",
    is_flag=True,
    help="An incident as Markdown for the system's own maintainers: the first that breaks the contract, or "
    "the INCIDENT named.",
)
def explain_command(name: str, wanted: str | None, results: Path, output: str, as_report: bool) -> int:
    """Say why a finding is a contradiction: the operations that prove it, and the edges between them that no
    order of them can have, or what each of them shows.

    \b
      wrackline explain last                                the first finding of each anomaly
      wrackline explain last i-44cfb0cad5                   the evidence of an incident
      wrackline explain last lost-write                     all of an anomaly that are in the report
      wrackline explain last f-lost-write-0f3a9c1b22        one: what a link of the report ends with
      wrackline explain last --bug-report                   versions, settings, steps, what the nodes said

    Findings stand below the incident that they are evidence of. The report draws the same. Of many findings
    the first ones are explained (docs/report-internals.md, Limits).
    """
    if as_report:
        click.echo(_bug_report(name, wanted, results))
        return 0
    run_dir = stored.find(name, results)
    need_verdict(run_dir)
    from wrackline.checkers.explain.step import explained  # late: with numpy and Arrow

    explanations = explained(run_dir)
    for file, why in explanations.lacking:
        click.echo(f"{run_dir.name}: {file}: {why}", err=True)
    selected = _select(explanations, wanted, run_dir.name)
    if output == "json":
        click.echo(list_to_json([one for _, own in selected for one in own]))
        return 0
    if not selected:
        click.echo(f"nothing was found in {run_dir.name}, so there is nothing to explain")
    incidents = {str(one.get("id")): one for one in rows(read_verdict(run_dir), "incidents")}
    with labels_of(_system(run_dir)):
        for of, own in selected:
            click.echo("\n".join(_incident_lines(incidents.get(of or ""), own, bool(incidents))))
    return 0


def _bug_report(name: str, wanted: str | None, results: Path) -> str:
    """The Markdown of an incident. A folder of which only verdict and report were kept will do. Raises
    WrongInput."""
    from wrackline.checkers.explain.step import explained  # late, as above
    from wrackline.harness.report.bug_report import bug_report
    from wrackline.harness.report.read.files import read_run

    run_dir = Path(name) if read_verdict(Path(name)) is not None else stored.find(name, results)
    need_verdict(run_dir)
    if (run_dir / FINDINGS).is_file():
        explained(run_dir)
    files = read_run(run_dir)
    incidents = rows(files.verdict, "incidents")
    named = [one for one in incidents if one.get("id") == wanted] if wanted else incidents
    if not named:
        there = ", ".join(str(one.get("id")) for one in incidents) or "none"
        raise WrongInput(f"{run_dir.name} has no incident {wanted or ''}".rstrip() + f"; it has {there}")
    incident = min(named, key=lambda one: one.get("meaning") != Meaning.VIOLATION)
    with labels_of(_system(run_dir)):
        return bug_report(files, incident)


def _incident_lines(
    incident: Mapping[str, Any] | None, own: Sequence[Explanation], has_incidents: bool
) -> Iterator[str]:
    """An incident, and some of its evidence below it."""
    if incident is not None:
        yield f"{incident['meaning']}, incident {incident['id']}: {in_full(incident)}\n"
    elif has_incidents:
        yield "Of incidents that the verdict does not tell:\n"
    meanings = {one["anomaly"]: one["meaning"] for one in (incident or {}).get("anomalies", ())}
    for one in own:
        meaning = meanings.get(one.finding.anomaly)
        aside = f"{meaning} by itself" if incident and meaning != incident["meaning"] else ""
        for line in text_of(one, aside):
            yield f"  {line}".rstrip() if has_incidents else line
        yield ""


def _system(run_dir: Path) -> str:
    try:
        return read_info(run_dir).system
    except (HistoryError, OSError, ValueError):
        return ""


def _select(
    explanations: Explanations, wanted: str | None, run: str
) -> list[tuple[str | None, list[Explanation]]]:
    """Returns the wanted explanations, grouped by incident. Raises WrongInput where nothing of that name
    was found."""
    selected: dict[str | None, list[Explanation]] = {}
    seen: set[str] = set()
    for group in explanations.groups:
        for one in group.explanations:
            finding = one.finding
            if wanted is None and finding.anomaly in seen:
                continue
            if wanted is None or wanted in (group.incident, finding.anomaly, finding.anchor):
                selected.setdefault(group.incident, []).append(one)
                seen.add(finding.anomaly)
    if wanted is not None and not selected:
        anomalies = ", ".join(dict.fromkeys(group.anomaly for group in explanations.groups)) or "nothing"
        raise WrongInput(f"{run} has no finding {wanted}; it has {anomalies}")
    return list(selected.items())


def text_of(one: Explanation, aside: str = "") -> Iterator[str]:
    """Lines: what was found, the operations as a table, edges or facts, and what is around. ``aside``: what
    else is said of the anomaly."""
    finding = one.finding
    place = partition_label(finding.topic, finding.partition)
    if finding.offset is not None:
        place += f", offset {number(finding.offset)}"
    if finding.value is not None:
        place += f", value {value_label(finding.value)}"
    place += f" ({finding.where})" if finding.where else ""
    yield f"{finding.anomaly}{f' ({aside})' if aside else ''}: {place}"
    yield f"  {finding.sentence}"
    if one.operations:
        yield ""
        yield from _table(one)
    if one.edges:
        named = f" (Elle calls the cycle {one.cycle})" if one.cycle else ""
        yield ""
        yield f"  No order of these operations is possible{named}:"
        for at, edge in enumerate(one.edges, 1):
            yield f"    {at}. {edge.kind.label}: {edge.sentence}: {edge.conclusion}."
    elif one.facts:
        yield ""
        yield "  What each of them shows:"
        yield from (f"    {fact}." for fact in one.facts)
    if one.neighbourhood is not None and one.neighbourhood.sentence:
        yield ""
        yield f"  {one.neighbourhood.sentence}."
    if one.faults:
        listed = (
            f"{fault.id} {fault.fault} {' '.join(fault.targets)} "
            f"({seconds(fault.begin_ns)} to {seconds(fault.ended_ns)})"
            for fault in one.faults[:_FAULTS]
        )
        yield f"  Faults near these operations: {', '.join(listed)}."
    yield f"  {finding.anchor}"


def _table(one: Explanation) -> Sequence[str]:
    headings = ("", "index", "process", "operation", "invoked", "completed", "outcome")
    shown = table(*(Column(heading, overflow="fold") for heading in headings))
    for at, op in enumerate(one.operations, 1):
        outcome = f"{op.outcome} {op.error}" if op.error else op.outcome
        shown.add_row(
            str(at),
            " → ".join(map(str, op.indexes)),
            op.who,
            f"{op.name} {op.what}",
            seconds(op.begin_ns),
            seconds(op.end_ns),
            outcome,
        )
    return [f"    {line}" for line in lines(shown, width=_WIDTH, markup=False)]
