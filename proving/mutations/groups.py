"""Mutations of what groups commit and are told to have committed (wrackline.checkers.anomalies.groups)."""

from __future__ import annotations

from wrackline.history.model import CONTROL, Event, Type
from wrackline.proving.model.columns import TOPIC
from wrackline.proving.mutations.edit import Edit
from wrackline.proving.mutations.edit_groups import (
    Told,
    acked,
    answers,
    committing,
    end_of_clients,
    given,
    highest,
    joined,
    last_commits,
    newest,
    operation,
    operations,
    rebalances,
)
from wrackline.proving.mutations.mutation import mutation


def _say(edit: Edit, one: Told, partition: int, offset: int) -> None:
    """Both events of a commit, or the answer to what is committed, name another offset."""
    for at in (one.invoked, one.completed):
        extra = None if at is None else edit.events[at].extra
        if at is not None and extra is not None and "offsets" in extra:
            edit.change(at, extra={**extra, "offsets": {**extra["offsets"], str(partition): offset}})


@mutation("commit-regression", "a member commits one less than it had committed before")
def commit_less(edit: Edit) -> bool:
    commits = acked(edit)
    for one in commits:
        for partition in one.offsets:
            before = highest(commits, one.group, partition, one.invoked)
            if before is None or before.offsets[partition] < 1:
                continue
            put_back = any(
                before.until < at < one.invoked
                and (event.process == one.process or said.get("member") == one.extra.get("member"))
                for at, event, said in rebalances(edit)
            )
            if not put_back:
                _say(edit, one, partition, before.offsets[partition] - 1)
                return True
    return False


@mutation(
    "commit-regression",
    "one less than was committed is told to be committed, which nobody ever did",
    also={"phantom-commit": "nobody committed it"},
)
def tell_less(edit: Edit) -> bool:
    commits = operations(edit, "commit")
    for one, partition, before in answers(edit):
        less = before.offsets[partition] - 1
        nobodys = all(c.offsets.get(partition) != less for c in commits if c.group == one.group)
        if less >= 0 and nobodys:
            _say(edit, one, partition, less)
            return True
    return False


@mutation("commit-regression", "nothing is told to be committed any more")
def forget_what_was_committed(edit: Edit) -> bool:
    for one, partition, _ in answers(edit):
        _say(edit, one, partition, -1)
        return True
    return False


@mutation(
    "commit-regression", "an older commit is told to be the last, though it was answered before that began"
)
def tell_an_older_commit(edit: Edit) -> bool:
    commits = operations(edit, "commit")
    for one, partition, before in answers(edit):
        of = [c for c in commits if c.group == one.group and partition in c.offsets]
        for older in {c.offsets[partition] for c in of if c.type is Type.OK}:
            same = [c for c in of if c.offsets[partition] == older and c.type is not Type.FAIL]
            fits = older < before.offsets[partition]
            if fits and all(c.type is Type.OK and c.until < before.invoked for c in same):
                _say(edit, one, partition, older)
                return True
    return False


@mutation("commit-beyond-end", "the last owner is given all there is, and commits one more")
def commit_one_more(edit: Edit) -> bool:
    at_end = end_of_clients(edit)
    for at, event, said in reversed(list(rebalances(edit))):
        alive = [e for e in edit.events if e.process == event.process]
        if said["group"] not in committing(edit) or alive[-1].type in (Type.INVOKE, Type.INFO):
            continue
        if said["generation"] < newest(edit, said["group"]):
            continue
        for partition in said["partitions"]:
            polls = [
                e
                for e in edit.events[at:]
                if e.process == event.process and e.f == "poll" and e.type is Type.OK
            ]
            stands = (polls[-1].extra or {})["positions"].get(str(partition)) if polls else None
            if stands is None:
                continue
            log, now = edit.log(partition), edit.events[at_end].time_ns
            rest = tuple(record for record in log if record.offset >= stands)
            who = {name: said[name] for name in ("group", "member", "generation") if name in said}
            commit = operation(
                event.process, "commit", {"offsets": {str(partition): len(log) + 1}, **who}, now
            )
            begun = Event(event.process, Type.INVOKE, "poll", topic=TOPIC, time_ns=now)
            answer = Event(event.process, Type.OK, "poll", topic=TOPIC, records=rest, time_ns=now)
            edit.insert(at_end, begun, answer, *commit)
            return True
    return False


def _begin(edit: Edit, at: int, group: str, partition: int, start: int) -> None:
    """A newcomer is told of a new generation, in which the partition begins there."""
    edit.insert(at, joined(edit, at, group, [partition], positions={str(partition): start}))


def _began_below(edit: Edit, group: str, partition: int, offset: int) -> bool:
    """Tells whether a member was given a lower offset, so that this one is an offset the group had to be
    given."""
    return min(given(edit, group, partition), default=offset) < offset


@mutation("group-skip", "a member begins one record further on, and nobody is told where")
def begin_one_later(edit: Edit) -> bool:
    commits = acked(edit)
    for at, event, said in list(rebalances(edit)):
        for partition, start in (said.get("positions") or {}).items():
            reported = given(edit, said["group"], int(partition))
            past = any(c.offsets.get(int(partition), 0) > start and c.group == said["group"] for c in commits)
            if len(reported.get(start, ())) != 1 or not past:
                continue
            poll = reported[start][0]
            later = next(
                (n for n, e, _ in rebalances(edit) if n > at and e.process == event.process), poll + 1
            )
            mine = edit.events[poll].process == event.process and at < poll < later
            if mine and _began_below(edit, said["group"], int(partition), start):
                place = (int(partition), start)
                edit.records(poll, lambda r: None if (r.partition, r.offset) == place else r)  # noqa: B023
                not_reported = {p: offset for p, offset in said["positions"].items() if p != partition}
                edit.change(at, extra={**said, "positions": not_reported})
                return True
    return False


@mutation("group-skip", "a newcomer begins at the end, which nobody is told, and commits it")
def begin_at_the_end(edit: Edit) -> bool:
    at_end = end_of_clients(edit)
    for group in sorted(committing(edit)):
        for partition in range(edit.partitions):
            known, end = given(edit, group, partition), len(edit.log(partition))
            missing = [offset for offset in range(end) if offset not in known]
            if not missing or not _began_below(edit, group, partition, missing[-1]):
                continue
            first = joined(edit, at_end, group, [partition])
            who = {name: value for name, value in (first.extra or {}).items() if name != "partitions"}
            commit = {"offsets": {str(partition): end}, **who}
            edit.insert(at_end, first, *operation(first.process, "commit", commit, first.time_ns))
            return True
    return False


@mutation("zombie-commit", "the commit of a fenced member succeeds")
def accept_a_fenced_commit(edit: Edit) -> bool:
    commits, answers = acked(edit), [one for one in operations(edit, "committed") if one.type is Type.OK]
    for one in operations(edit, "commit"):
        if one.type is not Type.FAIL or one.completed is None:
            continue
        newer = any(
            at < one.invoked and said["group"] == one.group and said["generation"] > one.extra["generation"]
            for at, _, said in rebalances(edit)
        )
        if newer and all(
            _no_regression(one, p, offset, commits, answers) for p, offset in one.offsets.items()
        ):
            edit.change(one.completed, type=Type.OK, error=None)
            return True
    return False


def _no_regression(one: Told, partition: int, offset: int, commits: list[Told], answers: list[Told]) -> bool:
    """Tells whether no larger offset was committed before, and no smaller one is, or is told to be, after."""
    before = highest(commits, one.group, partition, one.invoked)
    after = [
        reported.offsets[partition]
        for reported in (*commits, *answers)
        if reported.group == one.group and partition in reported.offsets and reported.invoked > one.until
    ]
    return (before is None or before.offsets[partition] <= offset) and min(after, default=offset) >= offset


@mutation("zombie-commit", "another member had been told of a later generation when a commit succeeds")
def fence_before_a_commit(edit: Edit) -> bool:
    one = next((one for one in acked(edit) if "generation" in one.extra), None)
    if one is None:
        return False
    edit.insert(one.invoked, joined(edit, one.invoked, one.group, [], member="other"))
    return True


@mutation("forgotten-commit", "a new generation begins one before what its group had committed")
def begin_before_what_was_committed(edit: Edit) -> bool:
    commits = operations(edit, "commit")
    for group, partition, last in last_commits(edit):
        start = last.offsets[partition] - 1
        others = {c.offsets.get(partition) for c in commits if c.group == group}
        if start not in others and _began_below(edit, group, partition, start):
            _begin(edit, end_of_clients(edit), group, partition, start)
            return True
    return False


@mutation("uncommitted-start", "a new generation begins one past all that its group ever asked to commit")
def begin_past_what_was_committed(edit: Edit) -> bool:
    commits = operations(edit, "commit")
    for group, partition, _ in last_commits(edit):
        start = 1 + max(c.offsets.get(partition, 0) for c in commits if c.group == group)
        _begin(edit, end_of_clients(edit), group, partition, start)
        return True
    return False


@mutation(
    "position-skip", "the last poll of a member leaves its last record out, and says that it is past it"
)
def pass_a_record(edit: Edit) -> bool:
    reported = {event.process for _, event, said in rebalances(edit) if said["group"] in committing(edit)}
    for at in reversed(range(len(edit.events))):
        event = edit.events[at]
        if event.f != "poll" or event.process not in reported or not event.records:
            continue
        last = event.records[-1]
        place = (last.partition, last.offset)
        stands = (event.extra or {}).get("positions", {}).get(str(last.partition))
        behind = {
            (record.partition, record.offset)
            for other in (*edit.events[:at], *edit.events[at + 1 :])
            if other.f == "poll" and other.process in reported
            for record in other.records
        }
        far = max((c.offsets.get(last.partition, 0) for c in acked(edit)), default=0)
        if (
            stands == last.offset + 1
            and far <= last.offset
            and place not in behind
            and len(event.records) > 1
        ):
            edit.records(at, lambda r: None if (r.partition, r.offset) == place else r)  # noqa: B023
            return True
    return False


@mutation("zombie-commit", "a newcomer is shown that a commit under way is not committed, and it succeeds")
def show_a_newcomer_less(edit: Edit) -> bool:
    """Takes a group's last commit, that goes further than any before, and tells a newcomer the one before."""
    commits = operations(edit, "commit")
    for one in reversed(acked(edit)):
        of_group = [c for c in commits if c.group == one.group]
        is_last = (
            one.extra.get("generation") == newest(edit, one.group) and of_group[-1].invoked == one.invoked
        )
        for partition, offset in one.offsets.items() if is_last else ():
            before = highest(acked(edit), one.group, partition, one.invoked)
            if before is None or before.offsets[partition] >= offset:
                continue
            shown = before.offsets[partition]
            same = [c for c in of_group if c.offsets.get(partition) == shown]
            if any(c.type is Type.INFO or c.until > one.invoked for c in same):
                continue
            first = joined(edit, one.invoked, one.group, [partition], positions={str(partition): shown})
            edit.insert(one.until, first)
            return True
    return False


@mutation("phantom-commit", "one more than anybody ever committed is told to be committed")
def tell_what_nobody_committed(edit: Edit) -> bool:
    commits = operations(edit, "commit")
    for one in operations(edit, "committed"):
        for partition in one.offsets if one.type is Type.OK else ():
            of = [c.offsets[partition] for c in commits if c.group == one.group and partition in c.offsets]
            if of:
                _say(edit, one, partition, max(of) + 1)
                return True
    return False


@mutation("double-owner", "another member is given a partition in the generation in which one owns it")
def own_twice(edit: Edit) -> bool:
    at_end, now = end_of_clients(edit), edit.events[end_of_clients(edit)].time_ns
    for _, event, said in reversed(list(rebalances(edit))):
        if said["group"] in committing(edit) and said["partitions"] and "generation" in said:
            last = [s for _, e, s in rebalances(edit) if e.process == event.process][-1]
            if last is said:
                reported = {**said, "member": "twin", "partitions": said["partitions"][:1], "positions": {}}
                twin = Event(edit.process(), Type.OK, "rebalance", topic=TOPIC, extra=reported, time_ns=now)
                edit.insert(at_end, twin)
                return True
    return False


@mutation("double-owner", "a cooperative member is given a partition before its owner gave it up")
def own_before_it_is_given_up(edit: Edit) -> bool:
    at_end, now = end_of_clients(edit), edit.events[end_of_clients(edit)].time_ns
    one, other = edit.process(), edit.process()

    def reported(process: int, generation: int, *partitions: int) -> Event:
        extra = {
            "group": "overlapping",
            "member": f"m{process}",
            "generation": generation,
            "partitions": list(partitions),
            "protocol": "cooperative",
        }
        return Event(process, Type.OK, "rebalance", topic=TOPIC, extra=extra, time_ns=now)

    edit.insert(at_end, reported(one, 1, 0), reported(other, 2, 0), reported(one, 2))
    return True


def _ask(edit: Edit, node: int, *, and_later: bool = False) -> bool:
    """At the end a node tells an older commit than the last one of a group. Node 1 had coordinated the group,
    and node 2 does. ``and_later``: node 2 tells the last commit then."""
    commits, at_end = operations(edit, "commit"), end_of_clients(edit)
    for group, partition, last in last_commits(edit):
        of = [c for c in commits if c.group == group and partition in c.offsets and c.type is not Type.FAIL]
        newest_at = last.offsets[partition]
        settled = {c.offsets[partition] for c in of if c.type is Type.OK}
        older = settled - {
            c.offsets[partition] for c in of if c.type is not Type.OK or c.until > last.invoked
        }
        older = {one for one in older if one < newest_at}
        if not older or any(c.type is not Type.OK and c.offsets[partition] >= newest_at for c in of):
            continue
        asker, now = edit.process(), edit.events[at_end].time_ns
        rows = [_elected(one, epoch, now) for epoch, one in enumerate((1, 2))]
        answered = [(node, max(older)), *([(2, newest_at)] if and_later else [])]
        for who, offset in answered:
            extra = {"offsets": {str(partition): offset}, "group": group, "coordinator": who}
            rows += operation(asker, "committed", {**extra, "coordinator_by": "connection"}, now)
        edit.insert(at_end, *rows)
        return True
    return False


def _elected(node: int, epoch: int, now: int) -> Event:
    place = {"topic": "__consumer_offsets", "partition": 0, "leader": node, "leader_epoch": epoch}
    return Event(CONTROL, Type.INFO, "cluster", extra={"partitions": [place]}, time_ns=now)


@mutation("deposed-answer", "a coordinator that was replaced tells an older commit")
def ask_the_deposed(edit: Edit) -> bool:
    return _ask(edit, 1)


@mutation("hidden-commit", "the new coordinator tells an older commit, and the last one afterwards")
def ask_the_new_one_twice(edit: Edit) -> bool:
    return _ask(edit, 2, and_later=True)


@mutation("vanished-commit", "the new coordinator tells an older commit, and the last one never again")
def ask_the_new_one(edit: Edit) -> bool:
    return _ask(edit, 2)
