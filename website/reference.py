"""Pages of reference that are made from the code: the schema of a specification, what is installed, and what
each command says of itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import click

from wrackline.harness.cli.main import wrackline
from wrackline.harness.cli.parts.anomalies import rows
from wrackline.harness.cli.parts.faults import works
from wrackline.harness.extend.faults import Known, fleets_with_hosts, known_faults
from wrackline.harness.specification.schema import schema
from wrackline.nemesis.presets import PRESETS
from wrackline.workloads.clients.properties import ALLOWED

Schema = Mapping[str, Any]
SECTIONS = ("topic", "nemesis", "contract")
"""Of a specification, which have no kinds."""
PARTS = {"fleet": ("kind", "fleets", "Hosts"), "system": ("kind", "systems", "Systems")}
PARTS["workload"] = ("name", "workloads", "Workloads")
"""Section -> what names its kind, its page, and the page's title."""


def pages() -> dict[str, str]:
    """By path in the site."""
    whole = schema()
    found = {
        f"reference/{page}.md": _parts(whole, section, key, title)
        for section, (key, page, title) in PARTS.items()
    }
    return {
        **found,
        "reference/specification.md": _specification(whole),
        "reference/faults.md": _faults(),
        "reference/anomalies.md": _anomalies(),
        "reference/commands.md": _commands(),
        "reference/librdkafka.md": _librdkafka(),
    }


def _page(title: str, *lines: str) -> str:
    return "\n".join([f"# {title}", "", *lines]) + "\n"


def _section(heading: str, *lines: str) -> list[str]:
    return ["", f"## {heading}", "", *lines]


# --- from the schema ----------------------------------------------------------------------------------------


def _specification(whole: Schema) -> str:
    lines = [
        "Every key of a specification, as `wrackline list specs --schema` has them: this page is made "
        "from it. What the keys are for: [A specification](../specification.md), "
        "[Workloads](../workloads.md), [Faults](../faults.md).",
        "",
        *_table(_keys(whole, whole, without=(*SECTIONS, *PARTS))),
    ]
    for section, (key, page, title) in PARTS.items():
        about = whole["properties"][section]["description"]
        depends = f"Which keys there are depends on `{section}.{key}`: [{title}]({page}.md)."
        lines += _section(section, f"{about} {depends}")
    for section in SECTIONS:
        about = whole["properties"][section]
        keys = _keys(_resolved(about, whole), whole, f"{section}.")
        lines += _section(section, about["description"], "", *_table(keys))
    lines += _section("Presets", "| `nemesis.preset` | |", "|---|---|")
    lines += [f"| `{name}` | {_cell(preset.what)} |" for name, preset in PRESETS.items()]
    return _page("Specification", *lines)


def _parts(whole: Schema, section: str, key: str, title: str) -> str:
    lines = [f"The keys of `{section}` in a specification, by its `{key}`."]
    for one in whole["properties"][section]["oneOf"]:
        model = _resolved(one, whole)
        name = model["properties"][key]
        keys = _keys(model, whole, f"{section}.", without=(key,))
        lines += _section(name["const"], name.get("description", ""), "", *_table(keys))
    return _page(title, *lines)


def _resolved(given: Schema, whole: Schema) -> Schema:
    """Where a schema refers to another, that one."""
    for one in (given, *given.get("allOf", ())):
        if "$ref" in one:
            found: Schema = whole["$defs"][one["$ref"].rpartition("/")[2]]
            return found
    return given


def _keys(
    model: Schema, whole: Schema, above: str = "", *, without: Sequence[str] = ()
) -> Iterator[tuple[str, ...]]:
    """(key, type, default, meaning) of each, those of sections inside with their paths."""
    required = model.get("required", ())
    for name, given in model.get("properties", {}).items():
        if name in without:
            continue
        inner = _resolved(given, whole)
        if "properties" in inner:
            yield from _keys(inner, whole, f"{above}{name}.")
            continue
        default = (
            "must be given" if name in required else _value(given["default"]) if "default" in given else ""
        )
        yield (
            f"`{above}{name}`",
            _type(given, whole),
            default,
            given.get("description", inner.get("description", "")),
        )


def _type(given: Schema, whole: Schema) -> str:
    inner = _resolved(given, whole)
    if "const" in inner:
        return _value(inner["const"])
    if "enum" in inner:
        return ", ".join(map(_value, inner["enum"])) if len(inner["enum"]) <= 12 else "a name"
    if "anyOf" in inner:
        kinds = [_type(one, whole) for one in inner["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds)) if len(kinds) <= 3 else "one of several forms"
    if "oneOf" in inner:
        return "a mapping"
    if str(inner.get("pattern", "")).startswith("^(?=.*[1-9])") or "ms)?$" in str(inner.get("pattern", "")):
        return "duration"
    match inner.get("type"):
        case "array":
            return f"list of {_type(inner['items'], whole)}" if inner.get("items") else "list"
        case "object":
            values = inner.get("additionalProperties")
            return f"mapping to {_type(values, whole)}" if isinstance(values, dict) and values else "mapping"
        case "integer" | "number" as kind:
            return f"{kind}{_range(inner)}"
        case "string":
            return "text"
        case "boolean":
            return "true or false"
    return "anything"


def _range(inner: Schema) -> str:
    low = inner.get("minimum", inner.get("exclusiveMinimum"))
    high = inner.get("maximum", inner.get("exclusiveMaximum"))
    more = " more than" if "exclusiveMinimum" in inner else ""
    if low is None:
        return ""
    to = f" to {high}" if high is not None and high < 1 << 62 else ""
    return f",{more or ' from'} {low}{to}"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "`true`" if value else "`false`"
    if value in ([], {}, None):
        return "none"
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _table(keys: Iterator[tuple[str, ...]]) -> list[str]:
    cells = [" | ".join(map(_cell, one)) for one in keys]
    return ["| key | type | default | |", "|---|---|---|---|", *(f"| {one} |" for one in cells)]


def _cell(text: str) -> str:
    return " ".join(text.replace("``", "`").replace("|", "\\|").split())


# --- from what is installed ---------------------------------------------------------------------------------


def _faults() -> str:
    fleets = fleets_with_hosts()
    known = known_faults()
    lines = [
        "Every fault that is installed, as `wrackline list faults NAME` has it: this page is made from it. "
        "What each does, how it is proved and undone: [Faults](../faults.md).",
        *_section(
            "On which hosts",
            "`part`: with some systems only. `wrackline list faults NAME` gives the reason of each `no`.",
            "",
            f"| fault | {' | '.join(f'`{fleet}`' for fleet in fleets)} |",
            "|---|" + "---|" * len(fleets),
            *(f"| `{one.name}` | {' | '.join(works(one, fleet) for fleet in fleets)} |" for one in known),
        ),
    ]
    for one in known:
        lines += _section(one.name, one.what, "", *_fault(one, fleets))
    return _page("Faults", *lines)


def _fault(one: Known, fleets: Sequence[str]) -> Iterator[str]:
    yield f"Its target is `{one.target}` where nobody says another." + (
        " It may hit the clients." if one.clients else ""
    )
    if one.needs:
        yield f"It needs {', '.join(one.needs)}."
    refused = [fleet for fleet in fleets if fleet in one.refused]
    yield f"Hosts: {', '.join(f'`{fleet}`' for fleet in fleets if fleet not in refused)}."
    if one.settings:
        yield ""
        yield from ("| key | default | |", "|---|---|---|")
        for setting in one.settings:
            default = "must be given" if setting.required else _value(setting.default)
            yield f"| `{setting.name}` | {_cell(default)} | {_cell(setting.what)} |"


def _anomalies() -> str:
    lines = [
        "Everything that the judge looks for, as `wrackline list anomalies` has it: this page is made from "
        "it. Definitions and contracts: "
        "[Anomalies, contracts, verdicts](../anomalies.md).",
    ]
    for family, own in groupby(rows(), key=lambda one: one.family):
        lines += _section(family, "| anomaly | meaning | contracts | Jepsen |", "|---|---|---|---|")
        lines += [
            f"| `{one.name}` | {_cell(one.meaning)} | {_cell(one.contract)} | {_cell(one.jepsen)} |"
            for one in own
        ]
    return _page("Anomalies", *lines)


def _librdkafka() -> str:
    return _page(
        "Properties of librdkafka",
        "`workload.client.librdkafka` may set these. This page is made from the list that specifications "
        "are checked by; [Workloads](../workloads.md#log) says why others are refused.",
        "",
        *(f"- `{name}`" for name in sorted(ALLOWED)),
    )


# --- from the command line ----------------------------------------------------------------------------------


def _commands() -> str:
    lines = ["What each command says with `--help`. From a checkout, `./wrack COMMAND` does the same."]
    with click.Context(wrackline, info_name="wrackline") as context:
        for heading, under in wrackline.headings.items():
            lines += ["", f"## {heading}"]
            for name in under:
                command = wrackline.get_command(context, name)
                assert command is not None
                lines += _command(command, f"wrackline {name}", "###")
    return _page("Commands", *lines)


def _command(command: click.Command, path: str, level: str) -> Iterator[str]:
    with click.Context(command, info_name=path, max_content_width=100, terminal_width=100) as context:
        yield from ("", f"{level} {path}", "", "```text", _plain(command.get_help(context)), "```")
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                if inner is not None and not inner.hidden:
                    yield from _command(inner, f"{path} {name}", f"{level}#")


def _plain(text: str) -> str:
    """Without what a terminal takes for colours, or for this user's home."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text).rstrip()
