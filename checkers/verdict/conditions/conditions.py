"""The conditions that a run must meet besides its findings, so that it can pass (docs/anomalies.md section
9). Each is a function, and has its name in ``CONDITIONS``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from wrackline.checkers.inputs import phases
from wrackline.checkers.inputs.runs import Run
from wrackline.checkers.verdict.conditions.condition import (
    NOT_ON_RECORD,
    Condition,
    Met,
    listed,
    unknown,
    unless,
)
from wrackline.checkers.verdict.conditions.fault_conditions import (
    faults_proved,
    faults_restored,
    targets_had_their_role,
)
from wrackline.checkers.verdict.conditions.thresholds import LEFT_OUT, THRESHOLDS
from wrackline.checkers.verdict.deletions import deletions
from wrackline.checkers.verdict.lossy_shutdowns import changed_in_place
from wrackline.checkers.verdict.measures import metrics
from wrackline.checkers.verdict.measures.acknowledged import acknowledged
from wrackline.checkers.verdict.measures.load import LEFT_OUT_LIMIT, load_during_faults
from wrackline.checkers.verdict.measures.metrics import Figures
from wrackline.checkers.verdict.wording import partition_name, seconds

RATE_TOLERANCE = 0.95
"""The asked rate is paced by a clock, and counts as reached when this share of it was done: it succeeded, or
was aborted as it was meant to be."""


FOLLOWERS = "followers answered clients in a rack"
TIER = "segments went to the remote tier and came back"


def conditions(run: Run, figures: Figures) -> list[Condition]:
    """All conditions. The one that shows how a run was ended early comes first, since it explains the
    rest."""
    without = {FOLLOWERS} if not run.info.rack else set()
    without |= {TIER} if run.course.tier is None else set()
    asked = {name: check for name, check in CONDITIONS.items() if name not in without}
    met = [Condition(name, *check(run, figures)) for name, check in asked.items()]
    return [*met, *_thresholds_met(run, figures)]


def all_looked_for(looked_for: Collection[str], missing: Collection[str]) -> Condition:
    """``missing``: anomalies that are installed and were not looked for."""
    name = "every installed check was made"
    if missing:
        return Condition(name, False, f"not looked for: {', '.join(missing)}; ./wrack setup installs all")
    return Condition(name, True, f"{len(looked_for)} anomalies were looked for")


def _went_to_its_end(run: Run, _: Figures) -> Met:
    if run.course.interrupted is not None:
        return False, run.course.interrupted
    if run.course.over:
        return True, "the run was not stopped early"
    phase = f"in phase {run.phases[-1].name}" if run.phases else "before its first phase"
    return unknown(run, f"it was killed, or broke down, {phase}, {seconds(run.end_ns)} after its start")


def _clock_kept(run: Run, _: Figures) -> Met:
    """Checks that the harness's clock kept time: it stamps what is sent, and a broker may refuse records
    of another time, or drop them as old."""
    leaps = [
        f"the harness's clock leapt {abs(ahead) / 1e9:,.0f} s {'ahead' if ahead > 0 else 'back'} "
        f"at {seconds(at)}"
        for at, ahead in run.course.leaps
    ]
    return unless(leaps, "no leap is on record")


def _duration_reached(run: Run, _: Figures) -> Met:
    if run.info.plan is None:
        return False, NOT_ON_RECORD
    asked = run.info.plan.duration_s
    lasted = sum(phase.end_ns - phase.begin_ns for phase in run.phases if phase.name == "main") / 1e9
    return lasted >= asked, f"the main phase lasted {lasted:.1f} of {asked:g} s"


def _faults_as_planned(run: Run, _: Figures) -> Met:
    """Planned, begun and ended are the same; whether they took effect is the next condition."""
    if run.info.plan is None:
        return False, NOT_ON_RECORD
    planned = planned_faults(run)
    by_id = {fault.id: fault for fault in run.faults}
    short = [f"{one} ({what}) did not begin" for one, what in planned.items() if one not in by_id]
    short += [
        f"{one} ({by_id[one].title}) did not end"
        for one in planned
        if one in by_id and by_id[one].ended_ns is None
    ]
    if run.info.plan.guided and run.course.guided is None:
        short.append(f"the guided schedule {run.info.plan.guided} did not begin")
    if run.info.plan.follows and not run.course.followed:
        short.append("no fault followed a state of the cluster")
    return unless(short, f"{len(planned)} of {len(planned)}" if planned else "none was planned")


def planned_faults(run: Run) -> dict[str, str]:
    """Id -> name, those of the guided schedule among them once it had begun; empty where no plan is on
    record."""
    timed = run.info.plan.faults if run.info.plan is not None else {}
    return {**timed, **(run.course.guided or {})}


def _nobody_died(run: Run, _: Figures) -> Met:
    deaths = [
        f"{fault.id}, {' and '.join(fault.targets)} at {seconds(fault.struck_ns)}: {fault.proof}"
        for fault in run.faults
        if not fault.asked_for
    ]
    if deaths:
        return False, listed(deaths)
    if not run.course.over:  # deaths are recorded at the latest when the replicas have been read back
        return unknown(run, "the nodes and hosts were not watched to the end of the run")
    if (why := run.info.unread.get("processes")) is not None:
        means = "every broker was asked to the end, and answered; their processes were not watched: "
        return True, means + why
    return True, "every node and host was watched to the end, and none died"


def _clients_stopped(run: Run, _: Figures) -> Met:
    """Judged by the answers that clients got after a partition's final read had begun, and by the runner's
    own record."""
    late = [
        f"{partition_name(place)}: a client got an answer about it at {seconds(final.late_ns)}, "
        "after its final read had begun"
        for place, final in sorted(run.final.items())
        if final.late_ns is not None
    ]
    if late:
        return False, listed(late) + ": that read is no evidence of loss"
    if run.course.stuck is None:
        return unknown(run, "the run ended before the clients were stopped")
    # An operation that is still under way is recorded with an unknown outcome, which is correct.
    stuck = f"; operations of {', '.join(run.course.stuck)} never completed" if run.course.stuck else ""
    return True, f"no client got an answer after the final read had begun{stuck}"


def _final_read(run: Run, _: Figures) -> Met:
    short = []
    for place in run.places:
        final = run.final.get(place)
        if final is None:
            short.append(f"{partition_name(place)} was not read")
        elif not final.complete:
            short.append(f"{partition_name(place)} was not read to its end offset {final.end:,}")
        elif final.stale_end is not None:
            short.append(
                f"the leader of {partition_name(place)} told {final.stale_end:,} as its end offset, and told "
                f"it again when records up to {final.end - 1:,} had been read: nobody knows where it ends"
            )
        elif final.unseen:
            short.append(
                f"{final.unseen} records acknowledged in {partition_name(place)} "
                "lie past the last record that was polled"
            )
    if not run.places:
        short = ["no topic is on record"]
    every = f"{len(run.places)} of {len(run.places)} partitions were read to their end offsets"
    passed_over = [
        f"; nobody could be given {_spelt(final.unreadable)} of {partition_name(place)}"
        for place, final in sorted(run.final.items())
        if final.unreadable
    ]
    return not short, ("; ".join(short) or every) + "".join(passed_over)


def _spelt(ranges: Sequence[tuple[int, int]]) -> str:
    """``offsets 3 to 6, 15 to 16``"""
    return f"offsets {', '.join(f'{first:,} to {last:,}' for first, last in ranges)}"


def _replicas_read(run: Run, _: Figures) -> Met:
    if (why := run.info.unread.get("replicas")) is not None:
        return True, f"none was read: {why}; the verdict rests on the final read alone"
    short, changed, whole = [], [], 0
    for place in run.places:
        assigned = {run.host(node) for node in run.assignment.get(place, ())}
        there = run.replicas.get(place, {})
        if not (assigned or there):
            short.append(f"no replica of {partition_name(place)} was read")
        for host in sorted(assigned | set(there)):
            replica = there.get(host)
            if replica is not None and not replica.complete and host in changed_in_place(run, place):
                changed.append(f"{partition_name(place)} on {host}")
            elif replica is None:
                short.append(f"the replica of {partition_name(place)} on {host} was not read")
            elif not replica.complete:
                why = f": {replica.problem}" if replica.problem else ""
                short.append(f"the replica of {partition_name(place)} on {host} was not read whole{why}")
            else:
                whole += 1
    detail = listed(short) or f"{whole} replicas were read whole"
    if changed and not short:
        detail += f"; a fault had changed the files of {', '.join(changed)}"
    return not short, detail


def _no_deletions(run: Run, _: Figures) -> Met:
    """Checks that nobody deleted records: of a deleted record nobody can say whether it had been lost
    before. What a setting explains was meant to happen."""
    result = deletions(run)
    unexplained = [str(one) for one in result if not one.setting]
    explained = f"deleted as configured: {listed([str(one) for one in result])}" if result else ""
    return unless(unexplained, explained or "every log begins at offset 0")


def _moved_again(run: Run, _: Figures) -> Met:
    """Checks what was seen at the last look at each promise of liveness: that it was kept. What stood still
    for as long as it may is a finding besides; what has no bound, as a crash, is nothing but that."""
    short = [f"{promise}: nobody could tell: {error}" for promise, (_, error) in run.looks.items() if error]
    last = [one for one in run.stalls if one.bound_s and run.looks[one.promise][0] == one.look]
    for one in last:
        why = f", and the cluster could not help it: {one.excuse}" if one.excuse else ""
        short.append(f"{one.promise}: {one.subject} stood still until {seconds(one.time_ns)}{why}")
    return unless(short, f"{len(run.looks)} promises of liveness" if run.looks else "nobody looked")


def _followers_answered(run: Run, _: Figures) -> Met:
    """Checks that clients in a rack read from followers at all; a run without a rack is not asked."""
    counts = run.course.by_followers
    if not counts:
        why = "does a broker stand there, and is replica.selector.class set?"
        return False, f"no follower gave a record to the clients in rack {run.info.rack}: {why}"
    total = sum(counts.values())
    return True, f"followers gave {total:,} records of {listed(sorted(counts))}"


def _tier_used(run: Run, _: Figures) -> Met:
    """Checks that records were moved to the remote tier, and that somebody was given some of there; a run
    without a tier is not asked."""
    tier = run.course.tier
    if tier is None:
        return True, "there was no remote tier"
    if not tier.copied:
        return False, "no segment was copied to it: do topics have remote.storage.enable and segment.ms?"
    used = f"{tier.copied:,} segments were copied to it"
    if not tier.fetched:
        return False, f"{used}, and none was read from it: do topics have local.retention.ms?"
    return True, f"{used}, and {tier.fetched:,} of them were read from it, in {tier.fetches:,} requests"


def _logs_there(run: Run, _: Figures) -> Met:
    files = run.course.files
    if (why := run.info.unread.get("logs")) is not None:
        return True, f"none was fetched: {why}"
    if files is None:
        return unknown(run, "no logs were collected")
    hosts = sorted({*run.nodes.values(), *files} - {*run.course.unused})
    short = [f"{host}: {why}" for host, why in sorted(run.course.missing.items())]
    short += [f"no log of {host} was fetched" for host in hosts if not _has_log(files.get(host, ()))]
    return unless(short, f"the logs of {len(hosts)} hosts were fetched")


def _has_log(names: Sequence[str]) -> bool:
    return any(name.endswith(".log") for name in names)


def _acknowledged(run: Run, figures: Figures) -> Met:
    if run.info.acks == "0":
        return True, "with acks=0 nothing is ever acknowledged"
    return unless(*acknowledged(run, figures))


def _kinds_succeeded(run: Run, figures: Figures) -> Met:
    error = []
    stretches = phases.healthy(run)
    if not stretches:
        error.append("there was no healthy phase")
    kinds = {f for _, f in figures.segments if f not in ("assign", "lag")}
    ever: set[str] = set()
    for stretch in stretches:
        outcomes = metrics.counted(run, figures, stretch.begin_ns, stretch.end_ns)
        when = f"{stretch.name} from {stretch.begin_ns / 1e9:,.1f} to {seconds(stretch.end_ns)}"
        if not outcomes and stretch.end_ns - stretch.begin_ns >= phases.HEALTHY_NS:
            error.append(f"no operation was invoked in {when}")
        error += [
            f"no {f} succeeded in {when} ({one.all} tried)"
            for f, one in sorted(outcomes.items())
            if not one.ok
        ]
        ever |= {f for f, one in outcomes.items() if one.ok}
    error += [f"no {f} succeeded in any healthy phase" for f in sorted(kinds - ever)] if not error else []
    if not kinds:
        error.append("no operation is on record")
    return unless(error, f"{', '.join(sorted(kinds))} succeeded in {len(stretches)} healthy phases")


def _rate_reached(run: Run, figures: Figures) -> Met:
    asked, reached = run.info.rate, metrics.rate_before_first_fault(run, figures)
    if asked <= 0:
        figure = "" if reached is None else f"; {reached:.0f} operations a second were done"
        return True, f"no rate was asked for{figure}"
    if reached is None:
        return (
            False,
            f"{asked:g} operations a second were asked for, but a fault struck before any were counted",
        )
    detail = f"{reached:.1f} of {asked:g} operations a second were done before the first fault"
    return reached >= asked * RATE_TOLERANCE, detail


def _load_kept_up(run: Run, figures: Figures) -> Met:
    """Clients that wait for dead partitions must not reduce the load just while faults are in force."""
    load = load_during_faults(run, figures)
    if load is None:
        return True, "no rate was asked for" if run.info.rate <= 0 else "no fault was injected"
    limit = run.info.thresholds.get(LEFT_OUT, LEFT_OUT_LIMIT)
    detail = (
        f"{load.asked:g} operations a second were asked for, {load.begun:.0f} were begun and "
        f"{load.done:.0f} were done: {load.left_out:.0%} were left out, and at most {limit:.0%} may be"
    )
    return load.left_out <= limit, detail


CONDITIONS: dict[str, Callable[[Run, Figures], Met]] = {
    "the run went to its end": _went_to_its_end,
    "the harness's clock kept time": _clock_kept,
    "planned duration reached": _duration_reached,
    "every planned fault began and ended": _faults_as_planned,
    "every fault proved": faults_proved,
    "every fault was undone by its own undo": faults_restored,
    "every fault hit the node of its role": targets_had_their_role,
    "nobody died unasked": _nobody_died,
    "clients had stopped before the final read": _clients_stopped,
    "final read complete": _final_read,
    "every replica's log read": _replicas_read,
    "everything moved again after healing": _moved_again,
    "nobody deleted records": _no_deletions,
    FOLLOWERS: _followers_answered,
    TIER: _tier_used,
    "the hosts' logs are there": _logs_there,
    "records acknowledged before, during and after faults": _acknowledged,
    "every operation kind succeeded in every healthy phase": _kinds_succeeded,
    "asked rate reached before the first fault": _rate_reached,
    "asked load kept up during faults": _load_kept_up,
}
"""In the order of verdict.json."""


def _thresholds_met(run: Run, figures: Figures) -> list[Condition]:
    """But for the share left out, which has a limit in every run."""
    limits = sorted(run.info.thresholds.items())
    return [_threshold_met(run, figures, name, limit) for name, limit in limits if name != LEFT_OUT]


def _threshold_met(run: Run, figures: Figures, name: str, limit: float) -> Condition:
    title, threshold = f"threshold {name}", THRESHOLDS.get(name)
    if threshold is None:
        return Condition(title, False, f"there is no such threshold; there are {', '.join(THRESHOLDS)}")
    measured = threshold.measure(run, figures)
    if measured is None:
        return Condition(title, False, f"{threshold.what}: there was nothing to measure")
    return Condition(title, threshold.is_met(measured, limit), threshold.described(measured, limit))
