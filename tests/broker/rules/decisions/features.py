"""Tables of the metadata's level."""

from __future__ import annotations

from tests.broker.rules.golden_tables import Decide, Facts, yes
from wrackline.broker.model.messages.admin import FeatureUpdate, UpgradeType
from wrackline.broker.model.metadata.features import METADATA_VERSION, NOT_SAID, Levels
from wrackline.broker.rules.placement.features import ClusterLevels
from wrackline.broker.rules.profile import Rules

TYPES = {
    "up": UpgradeType.UPGRADE,
    "safe": UpgradeType.SAFE_DOWNGRADE,
    "unsafe": UpgradeType.UNSAFE_DOWNGRADE,
}


def _level(cell: str) -> int | None:
    return None if cell == "-" else int(cell)


def _levels(first: int, cell: str) -> dict[int, Levels]:
    each = [NOT_SAID if one == "-" else Levels(11, int(one)) for one in cell.split(",")]
    return dict(enumerate(each, first))


def _range(cell: str) -> Levels:
    return NOT_SAID if cell == "-" else Levels(*map(int, cell.split("-")))


def refusal(rules: Rules, facts: Facts) -> object:
    now = ClusterLevels(
        _level(facts["level"]),
        _levels(1, facts["brokers"]),
        _levels(101, facts["controllers"]),
        "t-0 has an ELR" if yes(facts["ELR"]) else "",
    )
    wanted = FeatureUpdate(METADATA_VERSION, int(facts["wanted"]), TYPES[facts["type"]])
    return not rules.features.refusal(wanted, now)


def may_register(rules: Rules, facts: Facts) -> object:
    return rules.features.may_register(_level(facts["level"]), _range(facts["supported"]))


def unknown_level(rules: Rules, facts: Facts) -> object:
    return not rules.features.unknown_level(_level(facts["level"]), _range(facts["supported"]))


TABLES: dict[str, Decide] = {
    "features.refusal": refusal,
    "features.may_register": may_register,
    "features.unknown_level": unknown_level,
}
