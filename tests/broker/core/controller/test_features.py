"""The level of the metadata while a cluster goes from kraft35 to kip966 (docs/rolling-upgrades.md)."""

from __future__ import annotations

from uuid import UUID

from kio.schema.errors import ErrorCode

from tests.broker.core.controller.driver import CLUSTER, Driver, T, config
from tests.broker.core.solo import Solo
from wrackline.broker.core.controller.decisions.features import ControllerLevels
from wrackline.broker.model.effects import Send
from wrackline.broker.model.messages.admin import (
    FeatureUpdate,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
    UpgradeType,
)
from wrackline.broker.model.messages.controller import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from wrackline.broker.model.messages.requests import Refused
from wrackline.broker.model.metadata.features import METADATA_VERSION, NEWEST, WITH_ELR, WITHOUT_ELR, Levels
from wrackline.broker.model.metadata.records import FeatureLevelRecord
from wrackline.broker.rules.profile import profile

FORMER = Levels(WITHOUT_ELR, WITHOUT_ELR)


def register(driver: Driver, broker: int, levels: Levels) -> BrokerRegistrationResponse:
    request = BrokerRegistrationRequest(
        broker, CLUSTER, driver.incarnation(), f"n{broker}", 9092, levels=levels
    )
    response = driver.ask(request)
    assert isinstance(response, BrokerRegistrationResponse)
    driver.epochs[broker] = response.broker_epoch
    return response


def update(driver: Driver, level: int, kind: UpgradeType = UpgradeType.UPGRADE) -> UpdateFeaturesResponse:
    response = driver.ask(UpdateFeaturesRequest((FeatureUpdate(METADATA_VERSION, level, kind),), 1_000))
    assert isinstance(response, UpdateFeaturesResponse)
    return response


def of_kraft35(*brokers: int) -> Driver:
    """A cluster that kraft35 has made, with these brokers."""
    driver = Driver(rules=profile("kraft35"))
    for broker in brokers:
        register(driver, broker, FORMER)
        driver.beat(broker)
    return driver


def become_kip966(driver: Driver, *brokers: int) -> None:
    """The controller and then these brokers are started with the later profile."""
    driver.rules = profile("kip966")
    driver.restart()
    for broker in brokers:
        driver.let_expire(broker)
        register(driver, broker, NEWEST)
        driver.beat(broker)


def test_a_cluster_begins_with_the_highest_level_of_its_first_controller() -> None:
    assert Driver().controller.committed.level == WITH_ELR
    assert of_kraft35().controller.committed.level == WITHOUT_ELR


def test_a_later_controller_leaves_the_level_alone_and_remembers_no_elr_at_it() -> None:
    driver = of_kraft35(1, 2, 3)
    driver.create()
    become_kip966(driver)
    assert driver.controller.committed.level == WITHOUT_ELR
    driver.let_expire(1, 2, 3)
    assert (driver.partition().isr, driver.partition().elr) == ((3,), ()), "the last replica stands"


def test_a_log_without_a_level_keeps_none_and_the_profile_holds() -> None:
    driver = Driver()
    driver.start(1, 2, 3)
    driver.create()
    driver.controller.committed.features.clear()
    driver.controller.speculative.features.clear()
    driver.let_expire(1, 2)
    assert driver.partition().elr == (2,)
    assert "older than levels are" in str(update(driver, WITH_ELR).message)


def test_the_level_waits_for_every_broker_also_for_those_that_are_down() -> None:
    driver = of_kraft35(1, 2, 3)
    become_kip966(driver, 1, 2)
    refused = update(driver, WITH_ELR)
    assert refused.error is ErrorCode.invalid_update_version
    assert "Broker 3 only supports versions 11 to 11." in str(refused.message)
    driver.let_expire(3)
    assert update(driver, WITH_ELR).error is ErrorCode.invalid_update_version, "it comes back"
    assert driver.controller.committed.level == WITHOUT_ELR
    register(driver, 3, NEWEST)
    assert update(driver, WITH_ELR) == UpdateFeaturesResponse()
    assert driver.controller.committed.level == WITH_ELR
    assert driver.disk.records()[-1] == FeatureLevelRecord(METADATA_VERSION, WITH_ELR)


def test_from_the_level_on_who_leaves_an_isr_below_min_isr_is_remembered() -> None:
    driver = of_kraft35(1, 2, 3)
    driver.create()
    become_kip966(driver, 1, 2, 3)
    driver.alter((1, 2, 3), sender=driver.partition().leader)
    update(driver, WITH_ELR)
    assert driver.partition().isr == (1, 2, 3)
    driver.let_expire(1, 2)
    assert (driver.partition().isr, driver.partition().elr) == ((3,), (2,))


def test_the_last_replica_that_stood_in_the_isr_is_in_the_elr_with_the_level() -> None:
    driver = of_kraft35(1, 2, 3)
    driver.create()
    become_kip966(driver, 1, 2, 3)
    driver.let_expire(1, 2, 3)
    last = driver.partition().isr
    assert (len(last), driver.partition().leader) == (1, -1)
    update(driver, WITH_ELR)
    assert (driver.partition().isr, driver.partition().elr) == ((), last)
    driver.register(last[0], previous=driver.epochs[last[0]])
    driver.beat(last[0])
    assert driver.partition().leader == last[0]


def test_a_broker_of_the_former_profile_is_not_taken_any_more() -> None:
    driver = Driver()
    assert register(driver, 1, FORMER).error is ErrorCode.unsupported_version
    assert 1 not in driver.controller.committed.brokers
    assert register(driver, 1, NEWEST).error is ErrorCode.none


def test_a_controller_of_the_former_profile_ends_when_it_reads_the_level() -> None:
    driver = Driver()
    driver.rules = profile("kraft35")
    driver.restart()
    [gone] = driver.exits
    assert gone.code == 1
    assert "metadata.version is 23, and this node's profile supports 11 to 11" in gone.reason


def test_so_does_a_broker() -> None:
    solo = Solo(profile="kraft35")
    solo.metadata(FeatureLevelRecord(METADATA_VERSION, WITHOUT_ELR))
    assert not solo.exits
    solo.metadata(FeatureLevelRecord(METADATA_VERSION, WITH_ELR))
    assert [gone.code for gone in solo.exits] == [1]
    assert "start it with a later profile" in solo.exits[0].reason


def test_a_lower_level_is_refused_while_an_elr_would_be_forgotten() -> None:
    driver = Driver()
    driver.start(1, 2, 3)
    driver.create()
    driver.let_expire(1, 2)
    refused = update(driver, WITHOUT_ELR, UpgradeType.SAFE_DOWNGRADE)
    assert f"{T} has the ELR [2]" in str(refused.message)
    for broker in (1, 2):
        driver.register(broker, previous=driver.epochs[broker])
        driver.beat(broker)
    driver.alter((1, 2, 3))
    assert update(driver, WITHOUT_ELR).error is ErrorCode.invalid_update_version, "that is no upgrade"
    assert update(driver, WITHOUT_ELR, UpgradeType.SAFE_DOWNGRADE) == UpdateFeaturesResponse()
    driver.let_expire(1, 2)
    assert driver.partition().elr == ()


def test_a_wish_that_is_only_checked_changes_nothing() -> None:
    driver = of_kraft35()
    become_kip966(driver)
    request = UpdateFeaturesRequest((FeatureUpdate(METADATA_VERSION, WITH_ELR),), 1_000, validate_only=True)
    assert driver.ask(request) == UpdateFeaturesResponse()
    assert driver.controller.committed.level == WITHOUT_ELR


# --- what controllers tell each other ----------------------------------------------------------------------


def test_a_standby_tells_each_leader_once_and_again_when_it_was_not_heard() -> None:
    levels = ControllerLevels(config(), FORMER)
    me = UUID(int=7)
    assert levels.tell(-1, 1, me, 0.0) == []
    assert levels.tell(101, 1, me, 0.0) == [], "itself"
    [sent] = levels.tell(102, 1, me, 0.0)
    assert isinstance(sent, Send)
    assert sent.request == ControllerRegistrationRequest(101, me, "c1", 9093, FORMER)
    assert levels.tell(102, 1, me, 10.0) == []
    levels.answered(Refused(ErrorCode.not_controller), 20.0)
    assert levels.tell(102, 1, me, 100.0) == []
    assert len(levels.tell(102, 1, me, 600.0)) == 1
    levels.answered(ControllerRegistrationResponse(), 700.0)
    assert levels.tell(102, 1, me, 9_000.0) == []
    assert len(levels.tell(103, 2, me, 9_000.0)) == 1
