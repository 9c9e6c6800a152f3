"""Probes in the rules: the way that each of their functions decides, call by call.

A *way* is a function of the rules, with the outcomes of its conditions in one call: `may_join`, where the
first two conditions held and the third did not. Probes stand at every operand of ``and`` and ``or``, at the
condition of each ``if``, ``while`` and comprehension, at a comparison that is returned, and in each ``case``
and ``except``. ``recorder`` puts the compiled functions with probes in place of those that are there, so the
rules may be imported already. Nothing else in the process becomes slower, and nothing does without it.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

import wrackline.broker.rules

_ENTER, _LEAVE, _SEE = "__wrackline_enter__", "__wrackline_leave__", "__wrackline_see__"
_OF_ZOOKEEPER = "wrackline.zookeeper.rules"
Way = str
"""``replication.isr.IsrRules.may_join 0+ 1+ 2-``: conditions by number in their function, with outcomes."""


class Recorder:
    """The ways of this process."""

    def __init__(self) -> None:
        self._ways: set[Way] = set()
        self._calls: list[set[int]] = []
        """Of each call under way its outcomes: twice the number of a condition, and one more if it held."""
        self._texts: dict[tuple[str, tuple[int, ...]], Way] = {}

    def enter(self) -> None:
        self._calls.append(set())

    def leave(self, function: str) -> None:
        outcomes = tuple(sorted(self._calls.pop()))
        way = self._texts.get((function, outcomes))
        if way is None:
            text = "".join(f" {number // 2}{'+' if number % 2 else '-'}" for number in outcomes)
            way = self._texts[function, outcomes] = function + text
        self._ways.add(way)

    def see(self, number: int, value: Any) -> Any:
        if self._calls:
            self._calls[-1].add(2 * number + bool(value))
        return value

    def take(self) -> frozenset[Way]:
        """Returns the ways since the last call, and forgets them."""
        result = frozenset(self._ways)
        self._ways.clear()
        return result


@cache
def recorder() -> Recorder:
    """The recorder of this process; the first call puts the probes into all rules."""
    result = Recorder()
    for module in rule_modules():
        codes = _codes(compile(_probed(module), module.__file__ or "", "exec"))
        names = vars(module)
        names[_ENTER], names[_LEAVE], names[_SEE] = result.enter, result.leave, result.see
        for function in _functions(module):
            code = codes.get((function.__qualname__, function.__code__.co_firstlineno))
            if code is not None and code.co_freevars == function.__code__.co_freevars:
                function.__code__ = code
    return result


def rule_modules() -> Iterator[ModuleType]:
    """The modules of `broker/rules` and the rules of ZooKeeper's profiles."""
    package = wrackline.broker.rules
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.ispkg:
            yield importlib.import_module(module.name)
    yield importlib.import_module(_OF_ZOOKEEPER)


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """Functions and methods that the module itself defines."""
    owners = [module, *(one for one in vars(module).values() if inspect.isclass(one))]
    for owner in owners:
        if inspect.isclass(owner) and owner.__module__ != module.__name__:
            continue
        for one in list(vars(owner).values()):
            inner = one.fget if isinstance(one, property) else getattr(one, "__func__", one)
            if isinstance(inner, FunctionType) and inner.__module__ == module.__name__:
                yield inner


def _codes(code: CodeType) -> dict[tuple[str, int], CodeType]:
    """(qualified name, line) -> code, of every function that is compiled in it."""
    result: dict[tuple[str, int], CodeType] = {}
    for one in code.co_consts:
        if isinstance(one, CodeType):
            result[one.co_qualname, one.co_firstlineno] = one
            result |= _codes(one)
    return result


def _probed(module: ModuleType) -> ast.Module:
    tree = ast.parse(inspect.getsource(module))
    place = module.__name__.removeprefix("wrackline.").removeprefix("broker.rules.")
    _Functions(place).visit(tree)
    return ast.fix_missing_locations(tree)


class _Functions(ast.NodeTransformer):
    """Puts probes into each function at the top of a module or of a class."""

    def __init__(self, place: str) -> None:
        self._place = place

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        inner = _Functions(f"{self._place}.{node.name}")
        node.body = [inner.visit(one) for one in node.body]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if any(isinstance(one, ast.Yield | ast.YieldFrom) for one in ast.walk(node)):
            return node  # its calls would not end in the order in which they begin
        probes = _Probes()
        body = [probes.visit(one) for one in node.body]
        name = ast.Constant(f"{self._place}.{node.name}")
        node.body = [
            ast.Expr(_call(_ENTER)),
            ast.Try(body=body, handlers=[], orelse=[], finalbody=[ast.Expr(_call(_LEAVE, name))]),
        ]
        return node


class _Probes(ast.NodeTransformer):
    """Numbers the conditions of one function in the order of its text."""

    def __init__(self) -> None:
        self._count = 0

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        node.values = [self._with_probe(one) for one in node.values]
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        return self._test(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return self._test(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        return self._test(node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        node.ifs = [self._with_probe(one) for one in node.ifs]
        self.generic_visit(node)
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        if isinstance(node.value, ast.Compare):
            node.value = self._with_probe(node.value)
            return node
        self.generic_visit(node)
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        return self._entered(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        return self._entered(node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def _test(self, node: ast.If | ast.IfExp | ast.While) -> ast.AST:
        node.test = self._with_probe(node.test)
        for name, value in ast.iter_fields(node):
            if name != "test":
                setattr(node, name, self._visit_all(value))
        return node

    def _visit_all(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.visit(one) for one in value]
        return self.visit(value) if isinstance(value, ast.AST) else value

    def _with_probe(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.BoolOp):
            visited: ast.expr = self.visit(node)
            return visited
        number = self._number()
        self.generic_visit(node)
        return _call(_SEE, number, node)

    def _entered(self, node: ast.match_case | ast.ExceptHandler) -> ast.AST:
        number = self._number()
        self.generic_visit(node)
        node.body = [ast.Expr(_call(_SEE, number, ast.Constant(True))), *node.body]
        return node

    def _number(self) -> ast.Constant:
        self._count += 1
        return ast.Constant(self._count - 1)


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])
