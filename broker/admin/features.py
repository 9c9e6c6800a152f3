"""``wrackline-broker admin features``: the level of the cluster's metadata, as kafka-features does it."""

from __future__ import annotations

import argparse

from wrackline.broker.admin.client import AdminClient
from wrackline.broker.model.messages.admin import FeatureUpdate, UpgradeType
from wrackline.broker.model.metadata.features import NAMES


def add_features(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("describe", "upgrade", "downgrade"), nargs="?", default="describe")
    parser.add_argument("--feature", type=_level, metavar="NAME=LEVEL", help="metadata.version=23")
    parser.add_argument("--dry-run", action="store_true", help="only say whether it would be done")


def features(client: AdminClient, options: argparse.Namespace) -> None:
    if options.action == "describe":
        for name, (supported, level) in client.levels().items():
            finalized = "-" if level is None else f"{level} ({NAMES.get(level, '?')})"
            print(
                f"{name}  supported {supported.lowest} ({NAMES.get(supported.lowest, '?')}) to "
                f"{supported.highest} ({NAMES.get(supported.highest, '?')})  finalized {finalized}"
            )
        return
    if options.feature is None:
        raise SystemExit("wrackline-broker admin: features: say which, --feature metadata.version=LEVEL")
    kind = UpgradeType.UPGRADE if options.action == "upgrade" else UpgradeType.SAFE_DOWNGRADE
    name, level = options.feature
    client.update_feature(FeatureUpdate(name, level, kind), validate_only=options.dry_run)
    print(f"{name} {'could be' if options.dry_run else 'is'} {level} now")


def _level(text: str) -> tuple[str, int]:
    name, equals, level = text.partition("=")
    if not (name and equals and level.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=LEVEL")
    return name, int(level)
