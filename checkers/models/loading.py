"""Finds a model or a checker: a built-in or installed one by its name, or a user's own by where it is
written."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from wrackline.checkers.models.checker import Checker
from wrackline.checkers.models.protocol import Model, ModelError
from wrackline.plugins.registry import Group, PluginError, named, names

EXAMPLE = "mine.py:Counter or package.module:Counter"


def known() -> tuple[str, ...]:
    """The names of the built-in and installed models and checkers."""
    return names(Group.MODELS)


def load(reference: str, **settings: Any) -> Model[Any]:
    """The model of this name, or that of ``file.py:Name`` or ``package.module:Name``: a subclass of Model, or
    anything that returns one when it is called. ``settings`` are its arguments (``initial`` of a register).

    Raises ModelError."""
    result = load_decider(reference, **settings)
    if isinstance(result, Checker):
        raise ModelError(f"{reference} is a checker and no model: it needs no search, call its check()")
    return result


def load_decider(reference: str, **settings: Any) -> Model[Any] | Checker:
    """The same of a model or a checker, whichever it is. Raises ModelError."""
    return _made(reference, maker(reference), settings)


def maker(reference: str) -> Callable[..., Any]:
    """Returns the callable that makes the model or the checker, mostly its class. Raises ModelError."""
    if ":" in reference:
        return cast(Callable[..., Any], _from_code(reference))
    if reference.endswith(".py"):
        raise ModelError(f"{reference} names a file but no model in it: say {reference}:NAME")
    try:
        return cast(Callable[..., Any], named(Group.MODELS, reference).load())
    except PluginError as error:
        raise ModelError(f"{error}; one of your own is named as {EXAMPLE}") from error


def _from_code(reference: str) -> Any:
    where, _, name = reference.rpartition(":")
    try:
        module = _from_file(Path(where)) if where.endswith(".py") else import_module(where)
        return getattr(module, name)
    except AttributeError as error:
        raise ModelError(f"model {reference}: there is no {name} in {where}") from error
    except Exception as error:  # what others wrote may raise anything
        raise ModelError(f"model {reference} cannot be loaded: {type(error).__name__}: {error}") from error


def _from_file(path: Path) -> ModuleType:
    spec = spec_from_file_location(f"wrackline_model_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for the module of their class
    spec.loader.exec_module(module)
    return module


def _made(reference: str, maker: Callable[..., Any], settings: dict[str, Any]) -> Model[Any] | Checker:
    if settings:
        _refuse_unknown(reference, maker, settings)
    try:
        model = maker(**settings)
    except ModelError:
        raise
    except Exception as error:  # what others wrote may raise anything
        raise ModelError(f"model {reference} cannot be made: {type(error).__name__}: {error}") from error
    if not isinstance(model, Model | Checker):
        what = "no wrackline.api.Model and no wrackline.api.Checker"
        raise ModelError(f"model {reference} is {model!r:.60}, {what}; subclass one of them")
    return model


def _refuse_unknown(reference: str, maker: Callable[..., Any], settings: dict[str, Any]) -> None:
    try:
        inspect.signature(maker).bind(**settings)
    except (TypeError, ValueError) as error:
        raise ModelError(f"model {reference} takes no {', '.join(settings)}: {error}") from error
