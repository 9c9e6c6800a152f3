"""``wrackline plan``: what a run would do, and when. Makes no host."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import click

from wrackline.harness.cli.options import (
    fleet_option,
    output_option,
    print_json,
    seed_option,
    set_option,
    with_fleet,
)
from wrackline.harness.run.dry_run import FaultAhead, Forecast, GuidedAhead, LoadAhead, Phase, forecast
from wrackline.harness.specification.check import load_checked

_LABEL = 10
_WIDTH = 118


@click.command("plan")
@click.argument("spec", type=click.Path(path_type=Path), metavar="SPEC.yaml")
@seed_option
@set_option
@fleet_option
@output_option("`plan` in it is what a run saves as plan.json.")
def plan_command(
    spec: Path, seed: int | None, settings: tuple[str, ...], fleet: str | None, output: str
) -> int:
    """Show what `wrackline run` would do with this specification and seed: hosts, phases, the load, each
    fault with its time and target, the guided schedule, and the contract that judges it. Makes no host and
    needs no root.

    \b
      wrackline plan suites/demo-acks-all.yaml
      wrackline plan mine.yaml --seed 8                    what would another seed draw?
      wrackline plan mine.yaml --set workload.duration_s=10m --output json

    A target such as leader(log-0) is a role: who has it is known when the fault begins. Hosts that the seed
    alone settles are named. Exit code: 0, or 2 for a specification that `run` refuses.
    """
    ahead = forecast(load_checked(spec, settings=with_fleet(settings, fleet), seed=seed))
    if output == "json":
        print_json(ahead)
    else:
        click.echo("\n".join(_lines(ahead)))
    return 0


def _lines(ahead: Forecast) -> Iterator[str]:
    yield f"{ahead.name}, seed {ahead.seed}: about {_time(ahead.usual_s)}, then the judge"
    yield from _part("hosts", _hosts(ahead) or ["none of ours; the cluster's are found when the run begins"])
    yield from _part("phases", map(_phase, ahead.phases))
    yield from _part("workload", _load(ahead.workload))
    if ahead.faults:
        yield from _part("faults", _faults(ahead.faults))
    if ahead.guided is not None:
        yield from _part("guided", _guided(ahead.guided))
    if ahead.follow:
        yield from _part("follow", list(ahead.follow))
    if not ahead.faults and ahead.guided is None and not ahead.follow:
        yield from _part("faults", ["none"])
    if ahead.access:
        yield from _part("uses", [str(one) for one in ahead.access])
    if ahead.left_out:
        yield from _part("left out", list(ahead.left_out))
    contract = ahead.contract
    lines = [f"{contract.name}: {contract.promise}"]
    lines += [f"must show: {', '.join(contract.expected)}"] if contract.expected else []
    lines += [f"limit: {name} {limit:g}" for name, limit in contract.thresholds.items()]
    yield from _part("contract", lines)


def _part(label: str, lines: Iterator[str] | list[str] | map[str]) -> Iterator[str]:
    yield ""
    for number, line in enumerate(lines):
        first = (label if not number else "").ljust(_LABEL)
        yield from textwrap.wrap(first + line, _WIDTH, subsequent_indent=" " * (_LABEL + 2))


def _hosts(ahead: Forecast) -> list[str]:
    by_role: dict[str, list[str]] = {}
    for host, role in ahead.hosts.items():
        by_role.setdefault(role, []).append(host)
    return [f"{', '.join(hosts)}: {role}" for role, hosts in by_role.items()]


def _phase(phase: Phase) -> str:
    most = f", at most {_time(phase.at_most_s)}" if phase.at_most_s not in (None, phase.usual_s) else ""
    exactly = "" if phase.usual_s == phase.at_most_s else "about "
    return f"{phase.name:<8} {exactly + _time(phase.usual_s) + most:<32}  {phase.what}"


def _load(load: LoadAhead) -> list[str]:
    rate = (
        f"{load.rate:g} operations a second ({load.spacing})" if load.rate else "as fast as the clients can"
    )
    return [
        f"{load.name}: {rate} for {_time(load.duration_s)}, acks={load.acks}, "
        f"idempotence {'on' if load.idempotence else 'off'}",
        *(
            f"on {one.name}: {one.partitions} partitions, {one.replication_factor} replicas, "
            f"min.insync.replicas={one.min_insync_replicas}"
            for one in load.topics
        ),
        "processes: " + ", ".join(f"{count} {f}" for f, count in load.processes.items()),
        f"clients: {load.clients}",
    ]


def _faults(faults: tuple[FaultAhead, ...]) -> list[str]:
    rows = [
        (one.id, f"{one.at_s:.1f}", f"{one.ends_s:.1f} s", one.fault, _target_text(one)) for one in faults
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        f"{name:<{widths[0]}}  {at:>{widths[1]}} to {ends:>{widths[2]}}  {fault:<{widths[3]}}  {target}"
        for name, at, ends, fault, target in rows
    ]


def _target_text(fault: FaultAhead) -> str:
    role, hosts = fault.target.replace(",", ", "), ", ".join(fault.hosts or ())
    target = role if hosts in ("", role) else f"{hosts} ({role})"
    return ", ".join([target, *(f"{key}: {str(value).lower()}" for key, value in fault.how.items())])


def _guided(guided: GuidedAhead) -> list[str]:
    return [
        f"{guided.name} from {guided.at_s:g} s on {guided.partition}; "
        f"each wait takes at most {guided.deadline_s:g} s",
        f"where {guided.supposing}:",
        *(f"  {number}. {step}" for number, step in enumerate(guided.steps, 1)),
    ]


def _time(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    if not minutes:
        return f"{seconds:g} s"
    hours, minutes = divmod(int(minutes), 60)
    parts = [
        f"{hours} h" if hours else "",
        f"{minutes} min" if minutes else "",
        f"{rest:g} s" if rest else "",
    ]
    return " ".join(filter(None, parts))
