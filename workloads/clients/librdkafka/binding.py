"""confluent-kafka in the versions that are asked for. Each has its own modules and its own librdkafka, so
several can be in one process; the one that Wrackline is installed with is ``import confluent_kafka``.
"""

from __future__ import annotations

import importlib
import sys
import threading
from pathlib import Path
from types import ModuleType

import confluent_kafka
import confluent_kafka.admin

from wrackline.workloads.clients.base import Unavailable
from wrackline.workloads.clients.store import ClientStore
from wrackline.workloads.clients.versions import LIBRDKAFKA

_NAME = "confluent_kafka"
_loaded: dict[str, ModuleType] = {"": confluent_kafka}
_loading = threading.Lock()


def binding(version: str) -> ModuleType:
    """Returns confluent-kafka in this version; "": as it is installed with Wrackline. Raises Unavailable."""
    with _loading:
        if version not in _loaded:
            result = ClientStore(package=LIBRDKAFKA).find(version)
            if result is None:
                raise Unavailable(
                    f"confluent-kafka {version} is not installed on this machine: "
                    f"`wrackline get kafka --librdkafka {version}` does it"
                )
            _loaded[version] = _load(result.folder)
        return _loaded[version]


def _load(folder: Path) -> ModuleType:
    """Imports the package below the folder beside the one that has its name. Raises Unavailable."""
    kept = _of_package()
    sys.path.insert(0, str(folder))
    try:
        importlib.invalidate_caches()
        importlib.import_module(f"{_NAME}.admin")
        return sys.modules[_NAME]
    except ImportError as error:
        raise Unavailable(f"{folder} cannot be loaded by Python {sys.version.split()[0]}: {error}") from error
    finally:
        sys.path.remove(str(folder))
        _of_package()
        sys.modules.update(kept)


def _of_package() -> dict[str, ModuleType]:
    """Takes the package's modules out of Python's table."""
    names = [name for name in sys.modules if name == _NAME or name.startswith(f"{_NAME}.")]
    return {name: sys.modules.pop(name) for name in names}
