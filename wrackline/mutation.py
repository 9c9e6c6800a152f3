"""Mutations of Python source: which there are in a file, and the tree with one of them.

A mutation changes one expression or one statement, as mutmut does it: a comparison, a bound, plus or minus
one, a branch that is dropped, arguments in another order, state that is not reset. The changed place tells
when it is reached, so that a survivor that nobody executed is told from one that nobody noticed.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

REACHED = "__mutant_is_reached__"
"""Name of the function in ``builtins`` that a changed place calls; it returns None."""
_COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_CALLED = {"min": "max", "max": "min", "any": "all", "all": "any"}
_OF_NO_ORDER = ("min", "max")
"""In whichever order their arguments stand, they have one result."""
_LARGEST_NUMBER = 1_000
"""Larger numbers are limits and sizes: one more or less of them is no deviation."""

Replacements = Iterator[tuple[str, ast.AST]]


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change of one place. ``number`` counts the mutations of a file from 0, in order of the source."""

    file: str
    """Path below the package, ``broker/rules/replication/isr.py``."""
    number: int
    line: int
    change: str
    source: str
    """The changed line, stripped."""

    def __str__(self) -> str:
        return f"{self.file}:{self.number}"

    @property
    def text(self) -> str:
        return f"{self.file}:{self.line}  {self.change}  in  {self.source}"


def _comparisons(node: ast.AST) -> Replacements:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in _COMPARED[type(node.ops[0])]:
            yield (
                f"{_symbol(node.ops[0])} becomes {_symbol(other())}",
                ast.Compare(node.left, [other()], node.comparators),
            )


def _symbol(operator: ast.cmpop) -> str:
    shown = ast.unparse(ast.Compare(ast.Name("a"), [operator], [ast.Name("b")]))
    return shown.removeprefix("a ").removesuffix(" b")


def _logic(node: ast.AST) -> Replacements:
    if isinstance(node, ast.BoolOp):
        other, word = (
            (ast.Or(), "and becomes or") if isinstance(node.op, ast.And) else (ast.And(), "or becomes and")
        )
        yield word, ast.BoolOp(other, node.values)
        for at, dropped in enumerate(node.values):
            rest = [value for position, value in enumerate(node.values) if position != at]
            left = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
            yield f"without '{ast.unparse(dropped)[:60]}'", left
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "without not", node.operand


def _numbers(node: ast.AST) -> Replacements:
    if isinstance(node, ast.Constant) and type(node.value) is int and abs(node.value) <= _LARGEST_NUMBER:
        yield f"{node.value} becomes {node.value + 1}", ast.Constant(node.value + 1)
        if node.value != 0:
            yield f"{node.value} becomes {node.value - 1}", ast.Constant(node.value - 1)
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        yield f"{node.value} becomes {not node.value}", ast.Constant(not node.value)


def _arithmetic(node: ast.AST) -> Replacements:
    if isinstance(node, ast.BinOp) and (other := _COMPUTED.get(type(node.op))) is not None:
        yield f"becomes '{ast.unparse(changed := ast.BinOp(node.left, other(), node.right))[:60]}'", changed
    if isinstance(node, ast.IfExp):
        yield "its first choice always", node.body
        yield "its second choice always", node.orelse


def _calls(node: ast.AST) -> Replacements:
    if not isinstance(node, ast.Call):
        return
    if isinstance(node.func, ast.Name) and (other := _CALLED.get(node.func.id)) is not None:
        yield (
            f"{node.func.id} becomes {other}",
            ast.Call(ast.Name(other, ast.Load()), node.args, node.keywords),
        )
        if other in _OF_NO_ORDER and not node.keywords:
            return
    for at in range(len(node.args) - 1):
        first, second = node.args[at : at + 2]
        if isinstance(first, ast.Starred) or isinstance(second, ast.Starred):
            continue
        if type(first) is type(second) and ast.dump(first) != ast.dump(second):
            args = [*node.args[:at], second, first, *node.args[at + 2 :]]
            yield (
                f"arguments {at + 1} and {at + 2} in the other order",
                ast.Call(node.func, args, node.keywords),
            )


_OF_EXPRESSIONS: tuple[Callable[[ast.AST], Replacements], ...] = (
    _comparisons,
    _logic,
    _numbers,
    _arithmetic,
    _calls,
)


def _of_statement(node: ast.stmt) -> Replacements:
    nothing = ast.Pass()
    match node:
        case ast.Expr(value=ast.Call()):
            yield "is left out", nothing
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.AugAssign() | ast.Delete():
            yield "is left out", nothing
        case ast.If(body=body, orelse=orelse):
            yield "its branch is never taken", ast.If(ast.Constant(False), body, orelse)
            yield "its branch is always taken", ast.If(ast.Constant(True), body, orelse)
        case ast.Continue():
            yield "continue becomes break", ast.Break()
        case ast.Break():
            yield "break becomes continue", ast.Continue()


class _Visitor(ast.NodeTransformer):
    """Counts the mutations of a tree, and carries out the one that is asked for."""

    def __init__(self, chosen: int | None) -> None:
        self.chosen = chosen
        self.mutations: list[tuple[int, str]] = []
        """(line, change) of each."""

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                node.value = self._expression(node.value)
            return node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            node.body = [self.visit(each) for each in node.body]  # type: ignore[misc]
            return node
        if isinstance(
            node, ast.Assert | ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.arguments
        ):
            return node
        if isinstance(node, ast.match_case):
            if node.guard is not None:
                node.guard = self._expression(node.guard)
            node.body = [self.visit(each) for each in node.body]  # type: ignore[misc]
            return node
        if isinstance(node, ast.stmt):
            return self._statement(node)
        if isinstance(node, ast.expr):
            return self._expression(node)
        return super().generic_visit(node)

    def _statement(self, node: ast.stmt) -> ast.AST:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return node  # a docstring
        replacement = self._replacement(node, _of_statement(node))
        if replacement is not None:
            reached = ast.Expr(_call())
            assert isinstance(replacement, ast.stmt)
            return ast.If(ast.Constant(True), [reached, replacement], [])
        return super().generic_visit(node)

    def _expression(self, node: ast.expr) -> ast.expr:
        if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
            return super().generic_visit(node)  # type: ignore[return-value]
        if isinstance(node, ast.JoinedStr):
            return node
        made = (one for change in _OF_EXPRESSIONS for one in change(node))
        replacement = self._replacement(node, made)
        if replacement is not None:
            return ast.BoolOp(ast.Or(), [_call(), replacement])  # type: ignore[list-item]
        return super().generic_visit(node)  # type: ignore[return-value]

    def _replacement(self, node: ast.stmt | ast.expr, made: Replacements) -> ast.AST | None:
        result = None
        for change, replacement in made:
            if len(self.mutations) == self.chosen:
                result = copy.deepcopy(replacement)
            self.mutations.append((node.lineno, change))
        return result


def _call() -> ast.Call:
    return ast.Call(ast.Name(REACHED, ast.Load()), [], [])


def mutations_of(file: str, source: str) -> list[Mutation]:
    """All mutations of a source, in its order."""
    visitor, lines = _Visitor(None), source.splitlines()
    visitor.visit(ast.parse(source))
    return [
        Mutation(file, number, line, change, lines[line - 1].strip())
        for number, (line, change) in enumerate(visitor.mutations)
    ]


def mutated(source: str, number: int) -> ast.Module:
    """The tree of a source with one of its mutations. Raises ValueError for a number that it has not."""
    tree = ast.parse(source)
    visitor = _Visitor(number)
    visitor.visit(tree)
    if not 0 <= number < len(visitor.mutations):
        raise ValueError(
            f"there are {len(visitor.mutations)} mutations, the last is {len(visitor.mutations) - 1}"
        )
    return ast.fix_missing_locations(tree)
