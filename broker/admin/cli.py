"""``wrackline-broker admin --bootstrap HOST:PORT COMMAND``: topics, reassignments, elections, settings.

Partitions are written TOPIC:NUMBER. Exit codes: 0 done, 1 the cluster refused or did not answer (one line on
stderr), 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.delete_topics.v6.response import DeleteTopicsResponse
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName

from wrackline.broker.admin.client import Address, AdminClient, AdminError, check
from wrackline.broker.admin.execute import execute, throttled
from wrackline.broker.admin.features import add_features, features
from wrackline.broker.model.messages.admin import Source
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.broker.rules.placement.growth import Move, plan_growth
from wrackline.broker.rules.placement.placement import PlacementRules
from wrackline.kafka_client.connection import PREFERRED, UNCLEAN, Connection, duration
from wrackline.kafka_client.model import PartitionState, Reassignment, ResourceType, TopicSpec

EXIT_REFUSED = 1


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    try:
        with AdminClient(options.bootstrap, options.timeout) as client:
            code: int = options.run(client, options) or 0
    except AdminError as refused:
        print(f"wrackline-broker admin: {refused}", file=sys.stderr)
        return EXIT_REFUSED
    return code


# --- topics ------------------------------------------------------------------------------------------------


def _describe(client: AdminClient, options: argparse.Namespace) -> None:
    partitions = client.partitions(options.topics)
    moving = {one.place: one for one in client.reassignments()}
    if options.json:
        print(json.dumps([_as_json(p, moving.get(p.place)) for p in partitions], indent=2))
        return
    for broker in client.brokers():
        print(f"broker {broker.node_id}  {broker.host}:{broker.port}  rack {broker.rack or '-'}")
    for p in partitions:
        line = (
            f"{p.topic}:{p.partition}  leader {p.leader if p.leader >= 0 else 'none'} "
            f"(epoch {p.leader_epoch})  replicas {_ids(p.replicas)}  ISR {_ids(p.isr)}  ELR {_ids(p.elr)}  "
            f"LastKnownELR {_ids(p.last_known_elr)}"
        )
        if p.place in moving:
            line += f"  adding {_ids(moving[p.place].adding)}  removing {_ids(moving[p.place].removing)}"
        print(line)


def _as_json(p: PartitionState, moving: Reassignment | None) -> dict[str, object]:
    changing = {"adding": moving.adding, "removing": moving.removing} if moving else {}
    return {**asdict(p), "adding": (), "removing": (), **changing}


def _ids(brokers: Sequence[NodeId]) -> str:
    return ",".join(map(str, brokers)) or "-"


def _create(client: AdminClient, options: argparse.Namespace) -> None:
    configs = dict(options.config or [])
    topic = TopicSpec(options.topic, options.partitions, options.replication_factor, configs)
    create = partial(Connection.create_topic, topic=topic, timeout_s=client.timeout_s)
    client.ask(f"create topic {topic.name}", create)


def _delete(client: AdminClient, options: argparse.Namespace) -> None:
    """Deletes topics in a version of DeleteTopics whose answer says why not."""
    states = tuple(DeleteTopicState(name=TopicName(name), topic_id=None) for name in options.topics)
    request = DeleteTopicsRequest(topics=states, timeout=duration(client.timeout_s))
    answer = client.ask("delete topics", lambda one: one.request(request, DeleteTopicsResponse))
    for topic in answer.responses:
        check(f"delete topic {topic.name}", topic.error_code, topic.error_message)


def _partitions(client: AdminClient, options: argparse.Namespace) -> None:
    topic, count = options.topic, options.count
    create = partial(Connection.create_partitions, topic=topic, count=count, timeout_s=client.timeout_s)
    client.ask(f"give topic {topic} {count} partitions", create)


# --- reassignment ------------------------------------------------------------------------------------------


def _reassign(client: AdminClient, options: argparse.Namespace) -> None:
    targets = dict(options.targets)
    if options.plan:
        targets.update(_read_plan(options.plan))
    if not targets:
        raise AdminError("nothing to reassign: give TOPIC:NUMBER=1,2,3 or --plan FILE")
    known = {p.place: p.replicas for p in client.partitions({tp.topic for tp in targets})}
    if missing := sorted(tp for tp in targets if tp not in known):
        raise AdminError(f"there is no partition {missing[0]}")
    moves = [Move(tp, known[tp], after) for tp, after in sorted(targets.items())]
    if options.no_wait:
        client.reassign(dict(targets))
        return
    _carry_out(client, moves, options)


def _read_plan(path: Path) -> dict[TopicPartition, tuple[NodeId, ...]]:
    """Kafka's own format: {"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}]}."""
    try:
        listed = json.loads(path.read_text())["partitions"]
        return {TopicPartition(item["topic"], item["partition"]): tuple(item["replicas"]) for item in listed}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AdminError(f"{path} is no plan of reassignments: {error}") from error


def _carry_out(client: AdminClient, moves: Sequence[Move], options: argparse.Namespace) -> None:
    copies = sum(move.copied for move in moves)
    print(f"{len(moves)} partitions change, {copies} replicas are copied")
    if options.dry_run:
        for move in moves:
            print(f"{move.tp.topic}:{move.tp.partition}={_ids(move.after)}  # now {_ids(move.before)}")
        return
    with throttled(client, options.throttle):
        execute(client, moves, at_a_time=options.at_a_time, stall_s=options.stall_timeout)


def _cancel(client: AdminClient, options: argparse.Namespace) -> None:
    chosen = options.partitions or [one.place for one in client.reassignments()]
    if chosen:
        client.reassign(dict.fromkeys(chosen))
    print(f"{len(chosen)} reassignments cancelled")


def _list(client: AdminClient, _: argparse.Namespace) -> None:
    for (topic, partition), replicas, adding, removing in client.reassignments():
        changing = f"adding {_ids(adding)}  removing {_ids(removing)}"
        print(f"{topic}:{partition}  replicas {_ids(replicas)}  {changing}")


def _add_brokers(client: AdminClient, options: argparse.Namespace) -> None:
    """Z09: the new brokers take over their share, and nothing else moves."""
    brokers = client.brokers()
    if missing := sorted(set(options.brokers) - {b.node_id for b in brokers}):
        raise AdminError(f"brokers {missing} are not in the cluster: start them first")
    assignments = {TopicPartition(*p.place): p.replicas for p in client.partitions(options.topics or ())}
    moves = plan_growth(
        assignments,
        options.brokers,
        old=[b.node_id for b in brokers if b.node_id not in options.brokers],
        racks={b.node_id: b.rack for b in brokers},
    )
    _carry_out(client, moves, options)
    _prefer_moved(client, moves, options)


def _rebalance(client: AdminClient, options: argparse.Namespace) -> None:
    """Z08: every topic as if it were placed anew on the brokers there are now. May move everything."""
    brokers = client.brokers()
    topics: dict[str, list[PartitionState]] = {}
    for partition in client.partitions(options.topics or ()):
        topics.setdefault(partition.topic, []).append(partition)
    rules, moves = PlacementRules(), []
    for result in topics.values():
        first, factor = TopicPartition(*result[0].place), len(result[0].replicas)
        if factor > len(brokers):
            raise AdminError(f"{first}: {factor} replicas, {len(brokers)} brokers are live")
        if options.placement == "striped":
            placed = rules.place_striped({b.node_id: b.rack for b in brokers}, len(result), factor)
        else:
            placed = rules.place([b.node_id for b in brokers], len(result), factor)
        ordered = sorted(result, key=lambda p: p.partition)
        moves += [
            Move(TopicPartition(*p.place), p.replicas, to)
            for p, to in zip(ordered, placed, strict=True)
            if p.replicas != to
        ]
    _carry_out(client, moves, options)
    _prefer_moved(client, moves, options)


def _prefer_moved(client: AdminClient, moves: Sequence[Move], options: argparse.Namespace) -> None:
    """A plan says who is to lead too: let it be so now, not at the next check of the balance."""
    if moves and not options.dry_run:
        client.elect(PREFERRED, [move.tp for move in moves])


# --- the quorum --------------------------------------------------------------------------------------------


def _quorum(client: AdminClient, options: argparse.Namespace) -> None:
    result, nodes = client.quorum()
    end = next(
        (each.log_end_offset for each in result.current_voters if each.replica_id == result.leader_id),
        result.high_watermark,
    )
    now_ms = time.time() * 1000

    def ago_ms(at_ms: int) -> float | None:
        return None if at_ms < 0 else max(0.0, now_ms - at_ms)

    rows = [
        {
            "node": each.replica_id,
            "role": role if each.replica_id != result.leader_id else "leader",
            "log_end_offset": each.log_end_offset,
            "lag": end - each.log_end_offset if each.log_end_offset >= 0 else None,
            "fetched_ago_ms": ago_ms(each.last_fetch_timestamp),
            "caught_up_ago_ms": ago_ms(each.last_caught_up_timestamp),
            "directory_id": None if each.replica_directory_id is None else str(each.replica_directory_id),
        }
        for role, listed in (("voter", result.current_voters), ("observer", result.observers))
        for each in listed
    ]
    summary = {
        "leader": result.leader_id,
        "epoch": result.leader_epoch,
        "high_watermark": result.high_watermark,
        "controllers": {node.node_id: f"{node.listeners[0].host}:{node.listeners[0].port}" for node in nodes},
        "replicas": rows,
    }
    if options.json:
        print(json.dumps(summary, indent=2))
        return
    print(f"leader {result.leader_id}  epoch {result.leader_epoch}  high watermark {result.high_watermark}")
    for row in rows:
        ago = "never" if row["fetched_ago_ms"] is None else f"{row['fetched_ago_ms']:.0f} ms ago"
        caught = "never" if row["caught_up_ago_ms"] is None else f"{row['caught_up_ago_ms']:.0f} ms ago"
        lag = "?" if row["lag"] is None else row["lag"]
        print(
            f"{row['role']:8}  node {row['node']}  log end {row['log_end_offset']}  lag {lag}  "
            f"fetched {ago}  caught up {caught}"
        )


# --- elections, settings, brokers --------------------------------------------------------------------------


def _elect(client: AdminClient, options: argparse.Namespace) -> int:
    if options.leader is None:
        outcomes = client.elect(UNCLEAN if options.unclean else PREFERRED, options.partitions or None)
    elif options.partitions:
        outcomes = client.name_leader(options.leader, options.partitions)
    else:
        raise AdminError(f"say of which partitions broker {options.leader} shall be leader: TOPIC:NUMBER")
    refused = 0
    for (topic, partition), error, message in outcomes:
        if error is ErrorCode.none:
            print(f"{topic}:{partition}  elected" + (f": {message}" if message else ""))
        else:
            refused += error is not ErrorCode.election_not_needed
            print(f"{topic}:{partition}  {error.name}: {message}")
    return EXIT_REFUSED if refused else 0


def _config(client: AdminClient, options: argparse.Namespace) -> None:
    kind = ResourceType.TOPIC if options.topic else ResourceType.BROKER
    name = options.topic or options.broker or ""
    changes: dict[str, str | None] = dict(options.set or [])
    changes.update(dict.fromkeys(options.delete or []))
    if changes:
        client.alter_configs(kind, name, changes)
    result = client.ask(f"describe settings of {name}", lambda one: one.describe_configs(kind, name))
    for setting in result:
        print(f"{setting.name}={setting.value}  ({Source(setting.source).name.lower()})")


def _unregister(client: AdminClient, options: argparse.Namespace) -> None:
    client.ask(f"unregister broker {options.broker}", lambda one: one.unregister_broker(options.broker))


# --- arguments ---------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="wrackline-broker admin",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--bootstrap", required=True, type=_addresses, metavar="HOST:PORT,...", help="brokers to ask"
    )
    parser.add_argument("--timeout", type=float, default=10.0, metavar="SECONDS", help="for one answer")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: object, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(run=run)
        return sub

    sub = command("describe", _describe, "brokers; leader, replicas, ISR, ELR, LastKnownELR of partitions")
    sub.add_argument("topics", nargs="*")
    sub.add_argument("--json", action="store_true")
    sub = command("create", _create, "create a topic")
    sub.add_argument("topic")
    sub.add_argument("--partitions", type=int, default=-1)
    sub.add_argument("--replication-factor", type=int, default=-1)
    sub.add_argument("--config", type=_pair, action="append", metavar="NAME=VALUE")
    sub = command("delete", _delete, "delete topics")
    sub.add_argument("topics", nargs="+")
    sub = command("partitions", _partitions, "give a topic more partitions")
    sub.add_argument("topic")
    sub.add_argument("count", type=int, help="how many there shall be in all")
    sub = command("reassign", _reassign, "move partitions to other replicas")
    sub.add_argument("targets", nargs="*", type=_target, metavar="TOPIC:NUMBER=BROKER,...")
    sub.add_argument("--plan", type=Path, metavar="FILE", help="JSON, as kafka-reassign-partitions takes it")
    sub.add_argument("--no-wait", action="store_true", help="start all at once and return")
    _plan_options(sub)
    sub = command("cancel", _cancel, "take reassignments back; without partitions: all")
    sub.add_argument("partitions", nargs="*", type=_partition, metavar="TOPIC:NUMBER")
    command("list-reassignments", _list, "reassignments under way")
    sub = command("elect", _elect, "elect preferred leaders; or where there is none, uncleanly or by name")
    sub.add_argument("partitions", nargs="*", type=_partition, metavar="TOPIC:NUMBER")
    kind = sub.add_mutually_exclusive_group()
    kind.add_argument("--preferred", action="store_true", help="the default")
    kind.add_argument("--unclean", action="store_true", help="committed records may be lost")
    text = "name the leader, where unclean.recovery.strategy is manual; committed records may be lost"
    kind.add_argument("--leader", type=int, metavar="BROKER", help=text)
    sub = command("rebalance", _rebalance, "place topics anew on all live brokers; may move everything")
    sub.add_argument("topics", nargs="*")
    sub.add_argument("--placement", choices=("formula", "striped"), default="formula")
    _plan_options(sub)
    sub = command("add-brokers", _add_brokers, "give new brokers their share, with the fewest moves")
    sub.add_argument("brokers", nargs="+", type=int)
    sub.add_argument("--topics", nargs="+", help="default: all")
    _plan_options(sub)
    sub = command("config", _config, "show and change settings of a topic, or of the whole cluster")
    what = sub.add_mutually_exclusive_group(required=True)
    what.add_argument("--topic")
    what.add_argument("--cluster", action="store_true")
    what.add_argument("--broker", metavar="ID", help="to be read only, and only of the broker that is asked")
    sub.add_argument("--set", type=_pair, action="append", metavar="NAME=VALUE")
    sub.add_argument("--delete", action="append", metavar="NAME")
    sub = command(
        "quorum", _quorum, "the controllers: leader, epoch, high watermark, everyone's log end and lag"
    )
    sub.add_argument("--json", action="store_true")
    add_features(command("features", features, "show or change the level of the cluster's metadata"))
    sub = command("unregister", _unregister, "forget a broker that was stopped for good")
    sub.add_argument("broker", type=int)
    return parser


def _plan_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="show the plan only")
    parser.add_argument("--at-a-time", type=_positive, default=5, metavar="K", help="partitions, default 5")
    parser.add_argument(
        "--throttle", type=_positive, metavar="BYTES", help="per second and broker, while it runs"
    )
    parser.add_argument(
        "--stall-timeout", type=float, default=300.0, metavar="SECONDS", help="give up when nothing completes"
    )


def _addresses(text: str) -> list[Address]:
    result = []
    for item in text.split(","):
        host, colon, port = item.rpartition(":")
        if not (colon and host and port.isdigit()):
            raise argparse.ArgumentTypeError(f"{item!r} is not HOST:PORT")
        result.append((host, int(port)))
    return result


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 up")
    return int(text)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _partition(text: str) -> TopicPartition:
    topic, colon, number = text.rpartition(":")
    if not (topic and colon and number.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not TOPIC:NUMBER")
    return TopicPartition(topic, int(number))


def _target(text: str) -> tuple[TopicPartition, tuple[NodeId, ...]]:
    partition, equals, brokers = text.partition("=")
    listed = brokers.split(",")
    if not (equals and all(broker.isdigit() for broker in listed)):
        raise argparse.ArgumentTypeError(f"{text!r} is not TOPIC:NUMBER=BROKER,BROKER,...")
    return _partition(partition), tuple(int(broker) for broker in listed)
