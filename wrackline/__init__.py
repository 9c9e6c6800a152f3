"""Wrackline: a test harness for replicated brokers that speak Kafka's protocol, and a broker of its own."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType


class _KioWithoutHypothesis(MetaPathFinder):
    """kio imports hypothesis where it is installed, to draw examples of its types. Nothing of ours draws any,
    the import is half of each start of a node, and it leaves a folder in the user's. So while kio is imported
    there is no hypothesis, unless the process tests with it already."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "kio.static._phantom" or "hypothesis" in sys.modules:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_alone(module: ModuleType) -> None:
            sys.modules["hypothesis"] = None  # type: ignore[assignment]  # importing it fails: a rule of Python
            try:
                execute(module)
            finally:
                del sys.modules["hypothesis"]

        spec.loader.exec_module = execute_alone  # type: ignore[method-assign]
        return spec


sys.meta_path.insert(0, _KioWithoutHypothesis())

_EXTENSIONS = Path(__file__).with_name("extensions")
if _EXTENSIONS.is_dir():  # in a wheel that was compiled
    from wrackline.compiled import install

    install(_EXTENSIONS)
