"""What virtual machines are made of, as far as it can be seen without starting one."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from wrackline.fleets.abilities import Ability
from wrackline.fleets.base import FleetError
from wrackline.fleets.qemu import accelerators, qmp
from wrackline.fleets.qemu.guest.init import decode, encode
from wrackline.fleets.qemu.image.kernel import unpacked
from wrackline.fleets.qemu.image.recipe import Recipe, check_machine, recipe
from wrackline.fleets.qemu.image.store import Image, Store
from wrackline.fleets.qemu.services import files_for, packages_for
from wrackline.fleets.qemu.settings import PROGRAM, escaped
from wrackline.fleets.qemu.spec import QemuSpec
from wrackline.fleets.spec import HostNeeds
from wrackline.harness.specification.spec import SpecError, parse


def test_another_recipe_is_another_image() -> None:
    plain = recipe()
    assert recipe() == plain
    assert len({plain.digest, recipe(["tcpdump"]).digest, Recipe("sid", plain.packages).digest}) == 3
    assert recipe(["tcpdump", "tcpdump"]) == recipe(["tcpdump"])
    with pytest.raises(FleetError, match="'a b' is no name of a Debian package"):
        recipe(["a b"])


def test_systemd_comes_by_an_image_and_files_of_its_own_and_only_where_it_is_asked_for() -> None:
    assert packages_for("minimal", ["tcpdump"]) == ("tcpdump",)
    assert recipe(packages_for("minimal", [])) == recipe()
    assert {"systemd-sysv", "udev"} <= set(recipe(packages_for("systemd", [])).packages)
    assert files_for("minimal") == {}
    sshd, _mode = files_for("systemd")["/etc/systemd/system/ssh.service.d/wrackline.conf"]
    assert "\nExecStart=\nExecStart=/usr/sbin/sshd -D -e -f /etc/wrackline-fleet/sshd_config\n" in sshd


def test_a_machine_without_the_programs_is_told_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = ("mmdebstrap", "lz4")
    monkeypatch.setattr("shutil.which", lambda name, path="": None if name in absent else f"{path}/{name}")
    with pytest.raises(FleetError) as caught:
        check_machine()
    assert "\n" not in str(caught.value)
    assert str(caught.value) == (
        "the fleet qemu needs mmdebstrap, lz4: `sudo ./wrack setup qemu` installs it"
    )


@pytest.mark.parametrize("junk", [b"", b"MZ" * 1000, bytes(0x202) + b"HdrS" + bytes(0x1000)])
def test_what_is_no_kernel_is_refused(junk: bytes) -> None:
    with pytest.raises(FleetError, match=r"no bzImage|not known here"):
        unpacked(junk)


def test_messages_to_a_guest_are_lines_and_come_back() -> None:
    message = {"order": "x", "files": {"log/a": [1, None], "é\n": [2**40, 7]}}
    assert encode(message).count(b"\n") == 1
    assert decode(encode(message).strip()) == message
    for junk in (b"waiting", b"", b"!!", encode(message)[5:].strip()):
        with pytest.raises(ValueError):
            decode(junk)


def test_an_image_that_was_not_finished_is_none(tmp_path: Path) -> None:
    store = Store(tmp_path)
    scratch = store.scratch("0" * 16)
    assert store.all() == ()
    image = Image(tmp_path / ("0" * 16), "0" * 16, "sid", ("python3",), "3.11", "6.1", "2026")
    store.finish(scratch, image)
    assert store.all() == (image,)
    assert store.find("1" * 16) is None
    assert store.remove("0" * 16, print)
    assert not store.remove("0" * 16, print)
    assert store.all() == ()


def listens(path: Path) -> bool:
    """The file is there a moment before anybody listens."""
    try:
        qmp.connect(path, 1.0).close()
    except OSError:
        return False
    return True


@pytest.fixture
def empty_machine(tmp_path: Path) -> Iterator[Path]:
    """QEMU without any computer in it, but with its protocol, at a path longer than a socket's may be."""
    folder = tmp_path / ("deep" * 20)
    folder.mkdir()
    arguments = ["-M", "none", "-nodefaults", "-display", "none", "-qmp", "unix:qmp,server=on,wait=off"]
    with subprocess.Popen([PROGRAM, *arguments], cwd=folder) as machine:
        try:
            deadline = time.monotonic() + 10
            while not listens(folder / "qmp") and time.monotonic() < deadline:
                time.sleep(0.01)
            yield folder / "qmp"
        finally:
            machine.kill()


def test_qemu_answers_and_says_what_is_wrong(empty_machine: Path) -> None:
    assert qmp.ask(empty_machine, "query-status")["status"] == "running"
    qmp.ask(empty_machine, "stop")
    assert qmp.ask(empty_machine, "query-status")["status"] == "paused"
    with pytest.raises(FleetError, match="QMP set_link: Device 'n0' not found"):
        qmp.ask(empty_machine, "set_link", {"name": "n0", "up": False})
    with pytest.raises(FleetError, match=r"QMP stop at .*: is the host on\?|is the host on\?"):
        qmp.ask(empty_machine.with_name("none"), "stop")


def test_kvm_by_name_is_refused_where_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerators, "DEVICE", tmp_path / "kvm")
    image = Image(tmp_path, "0" * 16, "sid", (), "3.11", "6.1", "2026")
    assert accelerators.chosen("auto", image, tmp_path / "initrd", print) == "tcg"
    with pytest.raises(FleetError, match=r"fleet.accel kvm: .*No such file.*; accel: tcg emulates"):
        accelerators.chosen("kvm", image, tmp_path / "initrd", print)


def test_commas_in_paths_are_doubled() -> None:
    assert escaped(Path("/a,b/c")) == "/a,,b/c"


def test_a_specification_gets_what_slow_hosts_need() -> None:
    slow = parse("{name: a, fleet: {kind: qemu}, system: {waits: {warm_s: 7}}}", "x")
    quick = parse("{name: a}", "x")
    waits = slow.system.waits
    assert (waits.start_s, waits.ready_s) == (40, 240)
    assert waits.warm_s == 7, "what the user says stays"
    assert waits.steady_s == quick.system.waits.steady_s
    assert quick.system.waits.start_s == 10
    assert parse(slow.to_yaml(), "x") == slow, "the saved specification is the same again"


def test_a_specification_gets_what_its_system_needs_of_hosts() -> None:
    made = parse("{name: a, fleet: {kind: qemu}, system: {kind: apache-kafka}}", "x").fleet
    assert isinstance(made, QemuSpec)
    assert made.packages == ("openjdk-17-jre-headless",)
    assert made.memory_mb == 768
    said = parse("{name: a, fleet: {kind: qemu, memory_mb: 512}, system: {kind: apache-kafka}}", "x").fleet
    assert isinstance(said, QemuSpec)
    assert said.memory_mb == 512
    assert QemuSpec().carrying(HostNeeds()) == QemuSpec()
    assert all(QemuSpec().lacks(ability) is None for ability in Ability)


@pytest.mark.parametrize(
    ("fleet", "complaint"),
    [
        ("memory_mb: 64", "fleet.memory_mb"),
        ("subnet: 198.18.0.0/28", "/26 is the smallest"),
        ("cache: none", "fleet.cache"),
        ("accel: hvf", "fleet.accel"),
        ("init: runit", "fleet.init"),
        ("packages: [a b]", "fleet.packages"),
    ],
)
def test_a_wrong_setting_is_refused_in_one_line(fleet: str, complaint: str) -> None:
    with pytest.raises(SpecError, match=complaint) as caught:
        parse(f"{{name: a, fleet: {{kind: qemu, {fleet}}}}}", "x")
    assert "\n" not in str(caught.value)
