"""``wrackline-broker admin features``: the level of the cluster's metadata, as kafka-features does it."""

from __future__ import annotations

import argparse
from functools import partial

from wrackline.broker.admin.client import AdminClient
from wrackline.broker.model.messages.admin import UpgradeType
from wrackline.broker.model.metadata.features import NAMES
from wrackline.kafka_client.connection import Connection


def add_features(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("describe", "upgrade", "downgrade"), nargs="?", default="describe")
    parser.add_argument("--feature", type=_level, metavar="NAME=LEVEL", help="metadata.version=23")
    parser.add_argument("--dry-run", action="store_true", help="only say whether it would be done")


def features(client: AdminClient, options: argparse.Namespace) -> None:
    if options.action == "describe":
        result = client.ask("ask for the features", Connection.features)
        levels = {one.name: int(one.max_version_level) for one in result.finalized_features}
        for one in result.supported_features:
            lowest, highest, level = int(one.min_version), int(one.max_version), levels.get(one.name)
            finalized = "-" if level is None else f"{level} ({NAMES.get(level, '?')})"
            print(
                f"{one.name}  supported {lowest} ({NAMES.get(lowest, '?')}) to {highest} "
                f"({NAMES.get(highest, '?')})  finalized {finalized}"
            )
        return
    if options.feature is None:
        raise SystemExit("wrackline-broker admin: features: say which, --feature metadata.version=LEVEL")
    kind = UpgradeType.UPGRADE if options.action == "upgrade" else UpgradeType.SAFE_DOWNGRADE
    name, level = options.feature
    update = partial(
        Connection.update_feature,
        feature=name,
        level=level,
        kind=kind,
        validate_only=options.dry_run,
        timeout_s=client.timeout_s,
    )
    client.ask(f"give {name} the level {level}", update)
    print(f"{name} {'could be' if options.dry_run else 'is'} {level} now")


def _level(text: str) -> tuple[str, int]:
    name, equals, level = text.partition("=")
    if not (name and equals and level.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=LEVEL")
    return name, int(level)
