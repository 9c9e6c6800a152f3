"""Imports one module of this process from a mutated tree. ``install`` must be called before the module is
imported, so a mutant lives in a process of its own."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

from wrackline.mutation import REACHED, mutated


class _MutatedLoader(SourceFileLoader):
    """Compiles the mutated tree; what is cached on disk is the source as it stands."""

    number = 0

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - the loader's protocol
        tree: ast.Module = mutated(self.get_data(self.path).decode(), self.number)
        return compile(tree, self.path, "exec")


class _Finder(MetaPathFinder):
    def __init__(self, module: str, number: int) -> None:
        self._module, self._number = module, number

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._module:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            return None
        loader = _MutatedLoader(fullname, spec.origin)
        loader.number = self._number
        spec.loader = loader
        return spec


class Reach:
    """Tells whether the changed place was executed; it is what that place calls."""

    def __init__(self) -> None:
        self.reached = False

    def __call__(self) -> None:
        self.reached = True


def install(file: str, number: int) -> Reach:
    """Makes ``wrackline/FILE`` import with the mutation. Raises RuntimeError if it is imported already."""
    module = f"wrackline.{file.removesuffix('.py').replace('/', '.')}"
    if module in sys.modules:
        raise RuntimeError(f"{module} is imported already")
    reach = Reach()
    setattr(builtins, REACHED, reach)
    sys.meta_path.insert(0, _Finder(module, number))
    return reach
