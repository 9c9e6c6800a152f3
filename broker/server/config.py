"""The configuration file: flat TOML, Kafka's names with underscores (docs/protocol.md 6.1).

Every field of BrokerConfig or ControllerConfig is a key, whatever the role needs besides is in ShellSettings.
A combined node has the keys of both, and ``controller_id``: its controller is a node of its own within the
process, with its own address (that of ``controllers``), its own folder (``data_dir/controller``) and its own
copy of the metadata log, so that each of the two is the same code as in a process of its own.
An unknown key is an error, never ignored: a fault test whose setting silently did nothing proves nothing.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, replace
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from wrackline.broker.model.config import BrokerConfig, ControllerConfig
from wrackline.broker.model.types import Endpoint

ROLES = {"broker": BrokerConfig, "controller": ControllerConfig}
COMBINED = "combined"
_LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
_MAX_SEGMENT_BYTES = 2**31 - 1


class ConfigError(ValueError):
    """One line: which file, which key, what is wrong, what would be right. ``key``: the key alone, where it
    is one."""

    def __init__(self, message: str, *, key: str = "") -> None:
        super().__init__(message)
        self.key = key


@dataclass(frozen=True, slots=True)
class ShellSettings:
    """The facts that the process around the core needs."""

    data_dir: str
    secret_file: str
    """What it holds is the cluster's secret, by which its nodes prove to each other that they are of it."""
    listen: str | None = None
    """Address to bind; default: ``host``."""
    trace_file: str | None = None
    """Where to write one JSON line per state change; default: nowhere."""
    log_level: str = "INFO"
    segment_bytes: int = 1_073_741_824
    index_interval_bytes: int = 4_096
    socket_request_max_bytes: int = 104_857_600
    connect_timeout_ms: int = 10_000
    max_connections: int = 2**31 - 1
    """Of clients and other nodes, at once; never more than half of what the process may open (ulimit -n)."""
    damaged_max_entries: int = 100
    """Files and directories that were put aside because they were damaged, and are kept."""
    damaged_max_bytes: int = 10_737_418_240
    connections_max_idle_ms: int = 600_000
    """A connection on which nothing comes and nothing goes is closed after so long."""
    zookeeper_connect: str | None = None
    """The servers of ZooKeeper, ``host:port,...``: of profile zk08, which has no controllers, and of kip101
    in a cluster that comes from there."""


@dataclass(frozen=True, slots=True)
class Settings:
    role: str
    node: BrokerConfig | ControllerConfig
    """A combined node's broker."""
    shell: ShellSettings
    controller: Settings | None = None
    """A combined node's controller."""

    @property
    def is_controller(self) -> bool:
        return self.role == "controller"

    @property
    def parts(self) -> tuple[Settings, ...]:
        """Returns what runs in this process, the broker first."""
        return (self,) if self.controller is None else (self, self.controller)

    def to_toml(self) -> str:
        """The whole effective configuration; feeding it back gives the same settings."""
        lines = [f"role = {_toml(self.role)}"]
        tables = []
        written: set[str] = set()
        parts: list[BrokerConfig | ControllerConfig | ShellSettings] = [self.node, self.shell]
        if self.controller is not None:
            lines.append(f"controller_id = {self.controller.node.node_id}")
            parts.append(self.controller.node)
        for part in parts:
            for spec in fields(part):
                if spec.name in written:
                    continue
                written.add(spec.name)
                value = getattr(part, spec.name)
                if isinstance(value, Mapping):
                    rows = [f"{_toml(name)} = {_toml(item)}" for name, item in value.items()]
                    tables.append("\n".join(["", f"[{spec.name}]", *rows]))
                elif value is not None:
                    lines.append(f"{spec.name} = {_toml(value)}")
        return "\n".join([*lines, *tables]) + "\n"


def load(path: Path) -> Settings:
    """Raises ConfigError."""
    try:
        values = tomllib.loads(path.read_text())
    except OSError as failure:
        raise ConfigError(f"cannot read {path}: {failure.strerror}; give a file with --config") from failure
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error
    try:
        return parse(values)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}", key=error.key) from error


def parse(values: Mapping[str, Any]) -> Settings:
    """Raises ConfigError."""
    given = _with_preset(values)
    role = given.pop("role", None)
    if role == COMBINED:
        return _parse_combined(given)
    if role not in ROLES:
        raise _no_choice("role", role, sorted((*ROLES, COMBINED)))
    _refuse_unknown(given, _keys(ROLES[role], ShellSettings), role)
    settings = Settings(role, _build(ROLES[role], given), _build(ShellSettings, given))
    _check(settings)
    return settings


PRESETS: Mapping[str, Mapping[str, Any]] = {"kafka": {}, "source": {"replica_lag_time_max_ms": 10_000}}
"""Where Kafka's defaults and the protocol's text differ (conflict C4). A key that is given wins."""


def _with_preset(values: Mapping[str, Any]) -> dict[str, Any]:
    """``preset`` as the keys it stands for. A controller has no use for those of a broker."""
    given = dict(values)
    preset = given.pop("preset", "kafka")
    if preset not in PRESETS:
        raise _no_choice("preset", preset, sorted(PRESETS))
    return given if given.get("role") == "controller" else {**PRESETS[preset], **given}


def _parse_combined(given: dict[str, Any]) -> Settings:
    """The settings of the broker, with those of the controller in them."""
    broker_keys, controller_keys = _keys(BrokerConfig, ShellSettings), _keys(ControllerConfig, ShellSettings)
    _refuse_unknown(given, broker_keys | controller_keys | {"controller_id"}, COMBINED)
    if "controller_id" not in given:
        raise ConfigError(
            "missing key 'controller_id': the combined node's own id among controllers", key="controller_id"
        )
    controller_id = _convert("controller_id", given.pop("controller_id"), int)
    broker = parse({"role": "broker", **{k: v for k, v in given.items() if k in broker_keys}})
    if controller_id == broker.node.node_id:
        raise ConfigError(f"controller_id {controller_id} is node_id too; each of the two needs its own")
    own = next((one for one in broker.node.controllers if one.node_id == controller_id), None)
    if own is None:
        raise ConfigError(f"controller_id {controller_id} is not among controllers")
    controller = parse(
        {
            **{key: value for key, value in given.items() if key in controller_keys},
            "role": "controller",
            "node_id": controller_id,
            "host": own.host,
            "port": own.port,
            "data_dir": f"{broker.shell.data_dir}/controller",
        }
    )
    # The process has one page of metrics, the broker's.
    controller = replace(controller, node=replace(controller.node, metrics_port=None))
    return replace(broker, role=COMBINED, controller=controller)


def _keys(*kinds: type) -> set[str]:
    return {spec.name for kind in kinds for spec in fields(kind)}


def _refuse_unknown(given: Iterable[str], known: set[str], role: str) -> None:
    """Raises ConfigError. The key that is proposed may be of another role: a system hands one mapping to all
    its nodes, and a broker is given a controller's key that is misspelt."""
    for key in given:
        if key not in known:
            close = difflib.get_close_matches(key, known | _keys(ShellSettings, *ROLES.values()), n=1)
            proposal = f", did you mean {close[0]!r}?" if close else ""
            raise ConfigError(f"unknown key {key!r}{proposal} (role {role})", key=key)


def _no_choice(key: str, value: object, choices: Iterable[object]) -> ConfigError:
    return ConfigError(f"{key} = {value!r}; it must be one of: {', '.join(map(str, choices))}", key=key)


def _build(kind: type, given: Mapping[str, Any]) -> Any:
    """Makes the dataclass of its keys among ``given``."""
    hints = get_type_hints(kind)
    specs: tuple[Field[Any], ...] = fields(kind)
    missing = [
        spec.name
        for spec in specs
        if spec.default is MISSING and spec.default_factory is MISSING and spec.name not in given
    ]
    if missing:
        raise ConfigError(f"missing key {missing[0]!r}", key=missing[0])
    return kind(**{key: _convert(key, value, hints[key]) for key, value in given.items() if key in hints})


def _convert(key: str, value: object, hint: Any) -> Any:
    """A TOML value as the type of its field."""
    if get_origin(hint) is None and isinstance(hint, type) and issubclass(hint, Enum):
        return _convert_enum(key, value, hint)
    arguments = get_args(hint)
    if type(None) in arguments:
        return _convert(key, value, next(item for item in arguments if item is not type(None)))
    if get_origin(hint) is tuple:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ConfigError(f"{key} = {value!r}; it must be a list of strings", key=key)
        return tuple(_endpoint(key, item) if arguments[0] is Endpoint else item for item in value)
    if get_origin(hint) is dict:
        if not isinstance(value, dict):
            raise ConfigError(f"{key} = {value!r}; it must be a table", key=key)
        return {
            name: str(item).lower() if isinstance(item, bool) else str(item) for name, item in value.items()
        }
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise ConfigError(f"{key} = {value!r}; it must be of type {_TYPE_NAMES[hint]}", key=key)
    return value


_TYPE_NAMES = {int: "integer", str: "string", bool: "boolean (true or false)"}


def _convert_enum(key: str, value: object, kind: type[Enum]) -> Enum:
    try:
        return kind(value)
    except ValueError:
        raise _no_choice(key, value, (member.value for member in kind)) from None


def _endpoint(key: str, text: str) -> Endpoint:
    node_id, at, address = text.partition("@")
    host, colon, port = address.rpartition(":")
    if not (at and colon and host and node_id.isdigit() and port.isdigit() and 0 < int(port) < 65536):
        raise ConfigError(f"{key}: {text!r} is not like '101@198.18.0.21:9093' (node id @ host : port)")
    return Endpoint(int(node_id), host, int(port))


_BETWEEN: Mapping[str, tuple[int, int]] = {
    "port": (1, 65535),
    "replication_port": (1, 65535),
    "metrics_port": (1, 65535),
    "node_id": (0, 2**31 - 1),
    "segment_bytes": (1_024, _MAX_SEGMENT_BYTES),
    "metadata_log_segment_bytes": (1_024, _MAX_SEGMENT_BYTES),
    "metadata_log_max_records_between_snapshots": (1, 2**53),
    "metadata_log_max_record_bytes_between_snapshots": (1, 2**53),
    "quorum_fetch_snapshot_max_bytes": (1_024, 2**31 - 1),
    "index_interval_bytes": (0, _MAX_SEGMENT_BYTES),
    "message_timestamp_before_max_ms": (0, 2**63 - 1),
    "message_timestamp_after_max_ms": (0, 2**63 - 1),
    "max_connections": (1, 2**31 - 1),
    "fetch_max_bytes": (1_024, 2**31 - 1),
    "socket_request_max_bytes": (1_024, 2**31 - 1),
    "min_insync_replicas": (1, 32_767),
    "default_replication_factor": (1, 32_767),
    "num_replica_fetchers": (1, 1_000),
}


_VOTERS = (1, 3, 5)


def _check(settings: Settings) -> None:
    for part in (settings.node, settings.shell):
        for spec in fields(part):
            value = getattr(part, spec.name)
            low, high = _BETWEEN.get(spec.name, (1, 2**53) if spec.name.endswith("_ms") else (0, 2**53))
            if isinstance(value, int) and not isinstance(value, bool) and not low <= value <= high:
                raise ConfigError(f"{spec.name} = {value}; it must be from {low} to {high}", key=spec.name)
    servers = settings.shell.zookeeper_connect
    if servers is not None:
        _check_zookeeper(servers)
    if servers is None or settings.node.controllers or settings.is_controller:
        _check_quorum(settings)
    if getattr(settings.node, "replication_port", None) == settings.node.port:
        raise ConfigError(
            f"replication_port = {settings.node.port}, as port; clients and nodes are served on two ports",
            key="replication_port",
        )
    if settings.shell.log_level.upper() not in _LOG_LEVELS:
        raise _no_choice("log_level", settings.shell.log_level, _LOG_LEVELS)


def _check_zookeeper(servers: str) -> None:
    for server in servers.split(","):
        host, colon, port = server.strip().rpartition(":")
        if not (host and colon and port.isdigit() and 0 < int(port) < 65536):
            raise ConfigError(
                f"zookeeper_connect: {server!r} is not like '198.18.0.21:2181' (host : port, by commas)",
                key="zookeeper_connect",
            )


def _check_quorum(settings: Settings) -> None:
    if not settings.node.controllers:
        raise ConfigError("controllers = []; name at least one, like '101@198.18.0.21:9093'")
    ids = [controller.node_id for controller in settings.node.controllers]
    if len(set(ids)) < len(ids) or len(ids) not in _VOTERS:
        raise ConfigError(
            f"controllers = {ids}; a quorum has 1, 3 or 5 controllers, each with an id of its own: "
            "an even number tolerates no more failures than one less"
        )
    if settings.is_controller and settings.node.node_id not in {
        controller.node_id for controller in settings.node.controllers
    }:
        raise ConfigError(f"node_id {settings.node.node_id} is a controller but not among controllers")


def _toml(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case Endpoint():
            return _toml(f"{value.node_id}@{value.host}:{value.port}")
        case Enum():
            return _toml(value.value)
        case tuple() | list():
            return f"[{', '.join(_toml(item) for item in value)}]"
        case _:
            escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
            return '"' + "".join(c if c >= " " and c != "\x7f" else f"\\u{ord(c):04x}" for c in escaped) + '"'
