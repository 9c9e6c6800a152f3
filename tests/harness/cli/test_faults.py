"""``wrackline list faults`` says of every fault what it needs and where it works."""

from __future__ import annotations

import json

from click.testing import CliRunner

from wrackline.harness.cli.parts.faults import faults_command
from wrackline.harness.extend.faults import fleets_with_hosts, known_faults
from wrackline.plugins.registry import Group, names


def said(*arguments: str) -> str:
    done = CliRunner().invoke(faults_command, arguments, standalone_mode=False)
    assert done.exception is None, done.exception
    return done.output


def test_every_fault_is_listed_with_what_it_does_and_where() -> None:
    lines = said().splitlines()
    assert lines[0].split() == fleets_with_hosts()
    assert lines[0].split()[0] == "netns"
    for name in names(Group.FAULTS):
        [line] = [one for one in lines if one.split()[:1] == [name]]
        assert set(line.split()[1 : 1 + len(fleets_with_hosts())]) <= {"yes", "no", "part"}
    assert "jepsen-partition" in said()


def test_every_fault_and_setting_says_what_it_is() -> None:
    for fault in known_faults():
        assert fault.what.endswith("."), fault.name
        assert all(setting.what.endswith(".") for setting in fault.settings), fault.name


def test_one_fault_with_its_settings() -> None:
    text = said("change-config")
    assert "configs (must be given): Kafka's names" in text
    assert 'entity (default "topic")' in text
    [as_json] = json.loads(said("power-cut", "--json"))
    assert as_json["name"] == "power-cut"
    assert as_json["needs"]
    assert "netns" not in as_json["refused"]
