"""``python -m wrackline.broker.check``: what this broker would refuse of settings and of a topic, asked
before there is a node.

Who deploys asks the very program that will be deployed, over JSON on standard input and output:

    {"nodes": ["role = \\"broker\\"\\n...", ...], "topic": {"name": "log", "configs": {"retention.ms":
    "1000"}}}

Each of ``nodes`` is a whole configuration file (TOML); ``topic`` may be left out. The answer is a list of
refusals, empty when there are none: ``{"about": "config", "key": "flush_mode", "problem": "flush_mode = ...;
it must be ..."}``. ``about`` is ``config``, ``profile``, ``defects``, ``topic`` (its name) or ``topic
config``. Exit code 0 whatever the answer is, 2 when the question is none.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Mapping
from typing import Any

from wrackline.broker.defects import apply
from wrackline.broker.rules.placement.topics import TopicRules
from wrackline.broker.rules.profile import Rules, profile
from wrackline.broker.server import config

Refusal = dict[str, str]
FROM_ZOOKEEPER = "kip101"
"""The profile whose controllers can take a cluster over (docs/rolling-upgrades.md)."""


def rules_of(settings: config.Settings) -> Rules:
    """The profile with the defects in it. Raises ConfigError."""
    names = settings.node.defects
    try:
        rules = profile(settings.node.profile)
    except ValueError as error:
        raise config.ConfigError(str(error), key="profile") from error
    named, servers = settings.node.profile, settings.shell.zookeeper_connect
    if not rules.switches.has_controller and servers is None:
        problem = (
            f"profile {named!r} needs a ZooKeeper: name its servers in zookeeper_connect, or choose kip101, "
            "kraft35 or kip966"
        )
        raise config.ConfigError(problem, key="profile")
    if not rules.switches.has_controller and (settings.node.controllers or settings.is_controller):
        problem = (
            f"zookeeper_connect and controllers are both given: profile {named!r} has none; give "
            "role = 'broker' and controllers = []"
        )
        raise config.ConfigError(problem, key="zookeeper_connect")
    if servers is not None and rules.switches.has_controller and named != FROM_ZOOKEEPER:
        problem = (
            f"profile {named!r} has controllers and asks no ZooKeeper: leave zookeeper_connect out; a "
            f"cluster comes from ZooKeeper with profile {FROM_ZOOKEEPER}"
        )
        raise config.ConfigError(problem, key="zookeeper_connect")
    if rules.switches.has_controller and not settings.node.controllers:
        problem = "controllers = []; name those that take over from ZooKeeper, like '101@198.18.0.21:9093'"
        raise config.ConfigError(problem, key="controllers")
    try:
        return apply(rules, names) if names else rules
    except ValueError as error:
        raise config.ConfigError(str(error), key="defects") from error


def refusals(question: Mapping[str, Any]) -> list[Refusal]:
    """The first of each node (the same one once), then those of the topic. Raises KeyError, TypeError,
    ValueError for what is no question."""
    result = [*map(_of_node, question["nodes"])]
    if topic := question.get("topic"):
        result += _of_topic(TopicRules(), topic["name"], topic.get("configs", {}))
    refused = [one for one in result if one is not None]
    return [one for place, one in enumerate(refused) if one not in refused[:place]]


def _of_node(text: str) -> Refusal | None:
    try:
        rules_of(config.parse(tomllib.loads(text)))
    except config.ConfigError as error:
        about = error.key if error.key in ("profile", "defects") else "config"
        return {"about": about, "key": error.key, "problem": str(error)}
    return None


def _of_topic(rules: TopicRules, name: str, configs: Mapping[str, str]) -> list[Refusal]:
    result = []
    if problem := rules.name_error(name, ()):
        result.append({"about": "topic", "key": "name", "problem": problem})
    for key, value in configs.items():
        if problem := rules.config_error({key: value}):
            result.append({"about": "topic config", "key": key, "problem": problem})
    return result


def main() -> int:
    try:
        answer = refusals(json.load(sys.stdin))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        print(
            f"wrackline.broker.check: not a question: {error!r}; docs of the module show one", file=sys.stderr
        )
        return 2
    json.dump(answer, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
