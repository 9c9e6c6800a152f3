"""A pydantic ValidationError as lines that a person can act on, one a mistake."""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from wrackline.plugins.doors import Door
from wrackline.plugins.nearest import instead_of
from wrackline.plugins.registry import LISTS_ALL

_SHOWN_KEYS = 24
_PLACES_NAMED = 3
"""A key that more parts have is no hint."""


class Misfits(ValueError):
    """Several mistakes that one validator found. ``args``: a line for each."""


def lines(error: ValidationError, model: type[BaseModel], document: Mapping[str, Any]) -> list[str]:
    """A line for each mistake in ``document``: where, what, and what would do. The one to mend first comes
    first."""
    # An unknown key is most often the cause of a missing one.
    mistakes = sorted(error.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
    return [line for mistake in _one_a_value(_causes(mistakes)) for line in _lines(mistake, model, document)]


def _causes(mistakes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Drops mistakes in the length of lists that are too short only because an element is wrong."""
    places = [tuple(one["loc"]) for one in mistakes]

    def has_wrong_elements(loc: tuple[int | str, ...]) -> bool:
        return any(len(place) > len(loc) and place[: len(loc)] == loc for place in places)

    return [
        one for one in mistakes if one["type"] != "too_short" or not has_wrong_elements(tuple(one["loc"]))
    ]


def _one_a_value(mistakes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Joins mistakes on one value: what may be a text, a number or a boolean and is none of them is one
    mistake; pydantic makes one of each."""
    kept: list[dict[str, Any]] = []
    branches: dict[tuple[int | str, ...], dict[str, Any]] = {}
    for mistake in map(dict, mistakes):
        *above, branch = mistake["loc"] or ("",)
        if branch not in _BRANCHES or not mistake["msg"].startswith(_NOT_VALID):
            kept.append(mistake)
        elif first := branches.get(tuple(above)):
            first["msg"] += " or" + mistake["msg"].removeprefix(_NOT_VALID)
        else:
            branches[tuple(above)] = mistake
            kept.append(mistake)
    return kept


_BRANCHES = ("str", "int", "float", "bool")
_NOT_VALID = "Input should be a valid"


def _lines(mistake: dict[str, Any], model: type[BaseModel], document: Mapping[str, Any]) -> Sequence[str]:
    cause = mistake.get("ctx", {}).get("error")
    return cause.args if isinstance(cause, Misfits) else (_line(mistake, model, document),)


def _line(mistake: dict[str, Any], model: type[BaseModel], document: Mapping[str, Any]) -> str:
    loc = tuple(mistake["loc"])
    path = _path(loc, model, document, last_may_lack=mistake["type"] == "missing")
    match mistake["type"], mistake.get("ctx", {}):
        case "extra_forbidden", _:
            return f"{path}: unknown key{_suggestion(loc, model, document)}"
        case "missing", _:
            return f"{path}: missing"
        case "union_tag_not_found", {"discriminator": key}:
            return f"{path}: it needs the key {key}"
        case "union_tag_invalid", {"discriminator": key, "tag": tag, "expected_tags": tags}:
            known = tags.replace("'", "").split(", ")
            guessed = FIRST_GUESSES.get(tag.lower(), "")
            if guessed.partition(" ")[0].rstrip(",") in known:
                return f"{path}.{key.strip(_QUOTE)}: there is no {tag!r}; say {guessed}; {LISTS_ALL}"
            return f"{path}.{key.strip(_QUOTE)}: there is no {tag!r}{instead_of(tag, known, LISTS_ALL)}"
        case "string_type", _ if mistake["msg"] == _TEXT and isinstance(mistake["input"], int | float | date):
            return f"{path}: {_as_text(loc, mistake['input'])}"
    message = _in_words_of_yaml(mistake)
    value = mistake.get("input")
    if not path:
        return message
    shown = "" if isinstance(value, dict | list) or mistake["type"] == "value_error" else f", not {value!r}"
    return f"{path}: {message}{shown}"


_QUOTE = "'"
_TEXT = "Input should be a valid string"
_RUNS_ALREADY = "external, which tests a cluster that runs already, with its addresses in system.bootstrap"
_VIRTUAL = "qemu, or libvirt, which make virtual machines"
_FOLDERS = "process, which needs no root"
_MACHINES = "inventory, which names machines that there are"
FIRST_GUESSES = {
    **dict.fromkeys(("kafka", "apache", "kraft", "zookeeper", "apache_kafka"), "apache-kafka"),
    **dict.fromkeys(
        ("redpanda", "confluent", "confluent-cloud", "cp-kafka", "msk", "aiven", "strimzi", "warpstream"),
        _RUNS_ALREADY,
    ),
    **dict.fromkeys(
        ("automq", "azure", "event-hubs", "bufstream", "running", "k8s", "kubernetes", "helm"),
        _RUNS_ALREADY,
    ),
    **dict.fromkeys(("namespace", "namespaces", "network-namespaces", "linux"), "netns"),
    **dict.fromkeys(("laptop", "local", "localhost", "docker", "podman", "container", "mac"), _FOLDERS),
    **dict.fromkeys(("vm", "vms", "kvm", "virtual", "vagrant", "virtualbox"), _VIRTUAL),
    **dict.fromkeys(("ssh", "hosts", "machines", "servers", "ansible", "aws", "ec2", "gcp"), _MACHINES),
    **dict.fromkeys(("crash", "sigkill", "kill-9"), "kill"),
    **dict.fromkeys(("sigstop", "stop", "freeze"), "pause"),
    **dict.fromkeys(("power", "power-loss", "power-off"), "power-cut"),
    **dict.fromkeys(("latency", "delay", "packet-loss", "netem"), "packets"),
    **dict.fromkeys(("clock-skew", "skew", "time"), "clock-jump"),
}
"""Names that a newcomer tries first -> the one that there is, as its first word, and what it is."""


def _as_text(loc: tuple[int | str, ...], value: int | float | date) -> str:
    """Returns what to do with a number, a boolean or a date where a text is wanted: YAML takes what is not
    quoted for one."""
    shown = str(value).lower() if isinstance(value, bool) else value
    if loc[-1] == "version":
        return f"the number {shown} is no version: quote it and give it in full, such as '4.0.0'"
    return f"input should be a valid string, not {shown}: quote it"


def _in_words_of_yaml(mistake: Mapping[str, Any]) -> str:
    """A file has no tuples, models and dictionaries."""
    message: str = mistake["msg"].removeprefix("Value error, ")
    match mistake["type"]:
        case "tuple_type" | "too_short" | "too_long":
            message = message.replace("Tuple", "List").replace("tuple", "list")
            message = message.replace(" after validation", "")
        case "model_type" | "model_attributes_type" | "dict_type":
            message = "Input should be a mapping of keys to values"
    return message[0].lower() + message[1:]


def _path(
    loc: tuple[int | str, ...], model: type[BaseModel], document: Any, *, last_may_lack: bool = False
) -> str:
    """``nemesis.faults[2].at_s``: what the reader wrote, without the tags that pydantic adds for unions and
    without the keys that a short form leaves out. ``last_may_lack``: the last key is named though it is not
    written."""
    path = ""
    annotation: Any = model
    for number, step in enumerate(loc, 1):
        annotation, is_key = _descend(annotation, step)
        there = _has(document, step)
        if not is_key or not (there or (last_may_lack and number == len(loc))):
            continue
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
        document = document[step] if there else None
    return path


def _has(document: Any, step: int | str) -> bool:
    if isinstance(document, list):
        return isinstance(step, int) and step < len(document)
    return isinstance(document, dict) and step in document


def _suggestion(loc: tuple[int | str, ...], model: type[BaseModel], document: Mapping[str, Any]) -> str:
    annotation: Any = model
    for step in loc[:-1]:
        annotation, _ = _descend(annotation, step)
    result = _models(annotation)
    if len(result) != 1:
        return ""
    keys = [field.alias or name for name, field in result[0].model_fields.items()]
    value = str(loc[-1])
    near = difflib.get_close_matches(value, keys, n=1)
    elsewhere = _elsewhere(value, model, document)
    if elsewhere and (not near or _likeness(value, _key(elsewhere[0])) > _likeness(value, near[0])):
        near = elsewhere
    shown = ", ".join(keys[:_SHOWN_KEYS]) + (", ..." if len(keys) > _SHOWN_KEYS else "")
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ";"
    return f"{hint} known here: {shown}"


def _likeness(value: str, key: str) -> float:
    return difflib.SequenceMatcher(None, value, key).ratio()


def _key(place: str) -> str:
    return place.rpartition(".")[2]


def _elsewhere(value: str, model: type[BaseModel], document: Mapping[str, Any]) -> list[str]:
    """The places of the nearest key of any part of a specification, with the part's name where it is one of
    several: ``workload(group).session_timeout_ms``. Of several that of the part which is written is meant.
    Empty where none is near, or too many parts have it."""
    places: dict[str, set[str]] = {}
    for key, place in _places(model):
        places.setdefault(key, set()).add(place)
    near = difflib.get_close_matches(value, places, n=1, cutoff=0.8)
    result = sorted(places[near[0]]) if near else []
    chosen = [place for place in result if _is_in_document(place, document)]
    result = chosen or result
    return result if len(result) <= _PLACES_NAMED else []


def _is_in_document(place: str, document: Mapping[str, Any]) -> bool:
    """Tells whether ``workload(group)`` is the workload that is asked for."""
    part, _, kind = place.partition(".")[0].removesuffix(")").partition("(")
    value = document.get(part)
    return isinstance(value, dict) and kind in value.values()


def _places(annotation: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Each key below an annotation, and where it stands."""
    models = _models(annotation)
    for model in models if depth < _DEEPEST else ():
        here = f"{path}({_tag(model)})" if len(models) > 1 else path
        for name, field in model.model_fields.items():
            key = field.alias or name
            yield key, f"{here}.{key}" if here else key
            yield from _places(_annotated(field), f"{here}.{key}" if here else key, depth + 1)


def _tag(model: type[BaseModel]) -> str:
    """The word by which a part is chosen among several."""
    for name in ("name", "kind", "fault"):
        field = model.model_fields.get(name)
        if field is not None and get_origin(field.annotation) is Literal:
            return str(get_args(field.annotation)[0])
    return model.__name__


_DEEPEST = 4


def _descend(annotation: Any, step: int | str) -> tuple[Any, bool]:
    """Returns (what is at ``step`` below an annotation, whether ``step`` is something the reader wrote)."""
    if isinstance(step, int):
        return _element(annotation), True
    models = _models(annotation)
    tagged = [model for model in models if step == model.__name__ or step in _literals(model)]
    if tagged and len(models) > 1:  # the fleet `inventory` has a key of that name
        return tagged[0], False
    for model in models:
        for name, field in model.model_fields.items():
            if step in (name, field.alias):
                return _annotated(field), True
    if tagged:
        return tagged[0], False
    if _is_union(annotation) and step in (*_BRANCHES, "tuple", "list", "dict"):
        return annotation, False
    return _element(annotation), True


def _annotated(field: FieldInfo) -> Any:
    """The field's annotation with what pydantic has taken off it."""
    doors = [one for one in field.metadata if isinstance(one, Door)]
    return Annotated[field.annotation, doors[0]] if doors else field.annotation


def _literals(model: type[BaseModel]) -> set[str]:
    """The values of a model's discriminating field."""
    values: set[str] = set()
    for field in model.model_fields.values():
        if get_origin(field.annotation) is Literal:
            values |= {value for value in get_args(field.annotation) if isinstance(value, str)}
    return values


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType)


def _models(annotation: Any) -> list[type[BaseModel]]:
    """The models an annotation may stand for, containers not entered."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) is Annotated:
        for door in get_args(annotation)[1:]:
            if isinstance(door, Door):
                return list(door.models().values())
        return _models(get_args(annotation)[0])
    if _is_union(annotation):
        return [model for member in get_args(annotation) for model in _models(member)]
    return []


def _element(annotation: Any) -> Any:
    """Returns the type of a container's elements (the values, of a mapping); None when that is not known."""
    if get_origin(annotation) is Annotated:
        return _element(get_args(annotation)[0])
    if _is_union(annotation):
        result = [_element(member) for member in get_args(annotation)]
        return next((element for element in result if element is not None), None)
    arguments = [argument for argument in get_args(annotation) if argument is not Ellipsis]
    return arguments[-1] if arguments else None
