"""``python -m wrackline.broker``: one node of a Wrackline cluster, from one configuration file."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from wrackline.broker.check import rules_of
from wrackline.broker.rules.profile import Rules
from wrackline.broker.server import config
from wrackline.broker.server.node import StartError, run
from wrackline.broker.storage.logdir import DataDirError

EXIT_OK = 0
EXIT_USAGE = 2

_HELP = """\
Run one node (a broker, a controller, or both) of a Wrackline cluster.

The smallest configuration of a broker, in TOML:

    role = "broker"
    node_id = 1
    cluster_id = "my-cluster"
    host = "127.0.0.1"                        # told to clients and other nodes
    port = 9092                               # for clients
    replication_port = 9094                   # for other nodes; a controller has none
    secret_file = "/etc/wrackline/secret"     # the same 16 characters or more on every node
    data_dir = "/var/lib/wrackline/n1"
    controllers = ["101@127.0.0.1:9192"]      # node id @ host : port

and of the controller: role = "controller", node_id = 101, port = 9192, the rest alike. Start the controller
first or last, as you like. Three or five controllers are a quorum: name them all in controllers, in every
file. A combined node runs a broker and one of the controllers: role = "combined", controller_id = 101, the
keys of both; the controller listens where controllers says and keeps its log in data_dir/controller.
Profiles "zk08" and "zk08-kip101" have no controllers: controllers = [] and
zookeeper_connect = "127.0.0.1:2181".
--print-effective-config shows every other key and its value.

`wrackline-broker admin --help`: topics, reassignments, elections and settings of a running cluster.

SIGTERM shuts down in the controlled way (leaderships move, logs are flushed); a second one stops at once.
Exit codes: 0 stopped as asked, 1 cannot go on (docs/broker.md says when), 2 cannot start (one line says why),
3 the disk failed while running, 70 a bug, 130 second signal.
"""


def main(arguments: list[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["admin"]:
        from wrackline.broker.admin.cli import main as admin  # a node does not wait for what it never asks

        return admin(given[1:])
    options = _parser().parse_args(given)
    try:
        settings = config.load(options.config)
        rules = _rules(settings, allow_defects=options.allow_defects)
        if options.print_effective_config:
            print(settings.to_toml(), end="")
            return EXIT_OK
        _configure_logging(settings.shell.log_level.upper())
        for name in settings.node.defects:
            logging.getLogger("broker").warning("DEFECT LOADED: %s. This broker is wrong on purpose.", name)
        return run(settings, rules)
    except (config.ConfigError, StartError, DataDirError) as error:
        print(f"wrackline-broker: {error}", file=sys.stderr)
        return EXIT_USAGE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="wrackline-broker", description=_HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the configuration (TOML)")
    parser.add_argument(
        "--print-effective-config", action="store_true", help="show the whole configuration as TOML and exit"
    )
    parser.add_argument(
        "--allow-defects",
        action="store_true",
        help="let the file's key `defects` replace rules of the protocol by historic wrong ones",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {_version()}")
    return parser


def _version() -> str:
    try:
        return version("wrackline")
    except PackageNotFoundError:
        return "(not installed)"


def _rules(settings: config.Settings, *, allow_defects: bool) -> Rules:
    """Raises ConfigError."""
    names = settings.node.defects
    if names and not allow_defects:
        raise config.ConfigError(
            f"defects = {list(names)} make the broker wrong on purpose; they load only with --allow-defects"
        )
    return rules_of(settings)


def _configure_logging(level: str) -> None:
    formatter = logging.Formatter(
        "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S"
    )
    formatter.converter = time.gmtime
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.getLogger("asyncio").setLevel(logging.WARNING)


if __name__ == "__main__":
    sys.exit(main())
