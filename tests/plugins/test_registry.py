"""Parts are found through entry points; in a checkout ours are read from pyproject.toml."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.plugins.distributions import installed
from wrackline.harness.cli.main import main
from wrackline.harness.specification.spec import SpecError, parse
from wrackline.plugins import registry
from wrackline.plugins.registry import Group, PluginError, entries, load, load_all, named, names

ROOT = Path(__file__).parents[2]
GOOD = """
from typing import Literal
from wrackline.nemesis.faults.processes.processes import Kill
from wrackline.nemesis.faults.spec import FaultSpec

class Smash(FaultSpec):
    fault: Literal["smash"]
    force: int = 1

    def build(self):
        return Kill()
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path in which distributions can be put."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("acme")]:
        del sys.modules[name]
    registry.forget()


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


def test_what_is_built_in_is_what_pyproject_declares_however_old_the_installed_metadata_is() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    assert {name for name in declared if name.startswith("wrackline.")} == {group.value for group in Group}
    for group in Group:
        ours = [one for one in entries(group) if one.is_ours]
        assert {one.name: one.value for one in ours} == declared[group.value]


def test_nothing_is_imported_before_it_is_named(site: Path) -> None:
    installed(site, "acme", "1.2", {"faults": {"smash": "acme_smash:Smash"}}, {"acme_smash": GOOD})
    assert "smash" in names(Group.FAULTS)
    parse("{name: x, nemesis: {random: {faults: [kill]}}}", "x.yaml")
    assert "acme_smash" not in sys.modules
    spec = parse("{name: x, nemesis: {random: {faults: [{fault: smash, force: 3}, kill]}}}", "x.yaml")
    assert spec.nemesis.random is not None
    assert type(spec.nemesis.random.faults[0]).__module__ == "acme_smash"
    assert "force: 3" in spec.to_yaml()


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        ("{fault: smash, force: x}", "faults[0].force: input should be a valid integer, not 'x'"),
        (
            "{fault: smash, forse: 1}",
            "faults[0]: unknown key 'forse'; did you mean 'force'? known keys: fault, force, target",
        ),
        (
            "smesh",
            "faults[0].fault: there is no 'smesh'; did you mean 'smash'? `wrackline list parts` lists all",
        ),
    ],
)
def test_the_keys_of_a_part_from_elsewhere_are_known(site: Path, fault: str, line: str) -> None:
    installed(site, "acme", "1.2", {"faults": {"smash": "acme_smash:Smash"}}, {"acme_smash": GOOD})
    with pytest.raises(SpecError) as refused:
        parse("{name: x, nemesis: {random: {faults: [" + fault + "]}}}", "x.yaml")
    [mistake] = refused.value.mistakes
    assert mistake.startswith(f"x.yaml: nemesis.random.{line}")


def test_a_broken_part_is_listed_and_fails_only_who_names_it(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = {"acme_smash": GOOD, "acme_bad": "import no_such_thing"}
    faults = {"smash": "acme_smash:Smash", "bad": "acme_bad:Bad", "other": "acme_smash:Smash"}
    installed(site, "acme", "1.2", {"faults": faults}, sources)
    code, out, _ = call(capsys, "plugins", "--json")
    rows = {(row["kind"], row["name"]): row for row in orjson.loads(out)}
    assert code == 0
    assert rows["fault", "smash"] == {
        "kind": "fault",
        "name": "smash",
        "distribution": "acme",
        "version": "1.2",
        "module": "acme_smash",
        "problem": "",
    }
    bad = rows["fault", "bad"]["problem"]
    assert bad == (
        "the fault 'bad' (acme 1.2, acme_bad:Bad) cannot be loaded: ModuleNotFoundError: "
        "No module named 'no_such_thing'; mend or uninstall acme"
    )
    assert "must say so in its settings: fault: Literal['other']" in rows["fault", "other"]["problem"]
    assert all(not row["problem"] for row in rows.values() if row["distribution"] == "wrackline")
    assert parse("{name: x, nemesis: {random: {faults: [smash]}}}", "x.yaml")
    with pytest.raises(SpecError) as refused:
        parse("{name: x, nemesis: {random: {faults: [bad]}}}", "x.yaml")
    assert refused.value.mistakes == (f"x.yaml: nemesis.random.faults[0]: {bad}",)


def test_two_parts_of_one_name_are_refused(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    installed(site, "acme", "1.2", {"faults": {"kill": "acme_smash:Smash"}}, {"acme_smash": GOOD})
    with pytest.raises(SpecError, match=r"2 faults are called 'kill': wrackline .* and acme 1.2"):
        parse("{name: x, nemesis: {random: {faults: [kill]}}}", "x.yaml")
    code, out, _ = call(capsys, "plugins")
    assert code == 0
    assert out.count("uninstall all but one (pip uninstall acme)") == 2


def test_a_name_that_there_is_not_says_what_there_is() -> None:
    with pytest.raises(
        PluginError,
        match=r"no fleet .vm.; there are inventory, libvirt, netns, none, process, qemu, simulated; ",
    ):
        load(Group.FLEETS, "vm")


def test_a_check_that_is_broken_lets_nobody_be_judged(site: Path) -> None:
    """A judge who looks for less than was installed would not say so."""
    installed(site, "acme", "1.2", {"checks": {"odd": "acme_odd"}}, {"acme_odd": "1 / 0"})
    with pytest.raises(PluginError, match=r"the check 'odd' \(acme 1.2, acme_odd\) cannot be loaded: Zero"):
        load_all(Group.CHECKS)


def test_a_package_stands_for_all_its_modules(site: Path) -> None:
    installed(site, "acme", "1.2", {"checks": {"acme": "acme_checks"}}, {})
    (site / "acme_checks").mkdir()
    (site / "acme_checks/__init__.py").write_text("SEEN = []")
    for name in ("one", "two"):
        (site / f"acme_checks/{name}.py").write_text(f"import acme_checks; acme_checks.SEEN.append({name!r})")
    package = named(Group.CHECKS, "acme").load()
    assert package.SEEN == ["one", "two"]


def test_the_one_of_a_name_is_found_with_where_it_comes_from() -> None:
    assert named(Group.FLEETS, "netns").origin.endswith(", wrackline.fleets.netns.spec:NetnsSpec")
