"""All small changes of a Python module: bounds, conditions, arithmetic, numbers, order, dropped calls and checks.

Texts of errors, annotations and docstrings are not changed.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from mutants.change import Change, with_keys

COMPARISONS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
ARITHMETIC = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "//", ast.FloorDiv: "*", ast.Mod: "//",
    ast.LShift: ">>", ast.RShift: "<<", ast.BitAnd: "|", ast.BitOr: "&", ast.BitXor: "|",
}  # fmt: skip
CALLS = {"sorted": "list", "min": "max", "max": "min", "all": "any", "any": "all", "reversed": "iter"}


def python_changes(path: str, text: str) -> list[Change]:
    """Return the changes of one module, in the order of the text."""
    found = list(_Finder(path, text).visit(ast.parse(text), ""))
    return with_keys(sorted(found, key=lambda change: (change.start, change.stop, change.after)))


class _Finder:
    def __init__(self, path: str, text: str) -> None:
        self._path, self._text = path, text
        starts, place = [], 0
        for line in text.splitlines(keepends=True):
            starts.append(place)
            place += len(line)
        self._lines, self._starts = text.splitlines(keepends=True), starts

    def visit(self, node: ast.AST, scope: str) -> Iterator[Change]:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            scope = f"{scope}.{node.name}".lstrip(".")
        if _says_types(node):
            return
        yield from self._of_node(node, scope)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params") or (
                name == "exc" and isinstance(node, ast.Raise)
            ):
                continue
            children = list(value if isinstance(value, list) else [value])
            for child in children:
                if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                    yield from self.visit(child, scope)
            if name in ("body", "orelse", "finalbody") and isinstance(value, list):
                yield from self._order(value, scope)

    def _of_node(self, node: ast.AST, scope: str) -> Iterator[Change]:
        match node:
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                yield self._between(left, right, COMPARISONS[type(operator)], "bound", node, scope)
            case ast.Compare(ops=operators, comparators=rest):
                operands = [node.left, *rest]
                for i, operator in enumerate(operators):
                    after = COMPARISONS[type(operator)]
                    yield self._between(operands[i], operands[i + 1], after, "bound", node, scope)
            case ast.BoolOp(op=connective, values=values):
                after = "or" if isinstance(connective, ast.And) else "and"
                for left, right in itertools.pairwise(values):
                    yield self._between(left, right, after, "connective", node, scope)
            case ast.BinOp(op=operator, left=left, right=right) if type(operator) in ARITHMETIC and not (
                _is_text(left) or _is_text(right)
            ):
                after = ARITHMETIC[type(operator)]
                yield self._between(left, right, after, "arithmetic", node, scope)
            case ast.AugAssign(op=ast.Add() | ast.Sub() as operator, target=target, value=value):
                after = "-=" if isinstance(operator, ast.Add) else "+="
                yield self._between(target, value, after, "arithmetic", node, scope)
            case ast.If(test=test) | ast.IfExp(test=test):
                yield self._whole(test, f"(not ({self._source(test)}))", "condition", scope)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield self._whole(node, f"({self._source(operand)})", "condition", scope)
            case ast.Constant(value=bool(value)):
                yield self._whole(node, str(not value), "switch", scope)
            case ast.Constant(value=int(value)):
                yield self._whole(node, "0" if value == 1 else str(value + 1), "number", scope)
            case ast.Call(func=ast.Name(id=name) as function) if name in CALLS:
                yield self._whole(function, CALLS[name], "order", scope)
            case ast.Expr(value=ast.Call() | ast.Await()):
                yield self._whole(node, "pass", "dropped call", scope)
            case ast.Raise():
                yield self._whole(node, "pass", "dropped check", scope)
            case ast.Break():
                yield self._whole(node, "continue", "loop", scope)
            case ast.Continue():
                yield self._whole(node, "break", "loop", scope)

    def _order(self, body: list[ast.stmt], scope: str) -> Iterator[Change]:
        """Swap two consecutive calls."""
        for first, second in itertools.pairwise(body):
            if _is_call(first) and _is_call(second):
                start, stop = self._span(first)[0], self._span(second)[1]
                gap = self._text[self._span(first)[1] : self._span(second)[0]]
                after = self._source(second) + gap + self._source(first)
                yield Change(
                    self._path, scope, first.lineno, "swap", start, stop, self._text[start:stop], after
                )

    def _whole(self, node: ast.AST, after: str, kind: str, scope: str) -> Change:
        start, stop = self._span(node)
        line = getattr(node, "lineno", 0)
        return Change(self._path, scope, line, kind, start, stop, self._text[start:stop], after)

    def _between(
        self, left: ast.AST, right: ast.AST, after: str, kind: str, node: ast.AST, scope: str
    ) -> Change:
        """Change the operator between two operands. The change shows the whole expression if it is short."""
        low, high = self._span(left)[1], self._span(right)[0]
        gap = self._text[low:high]
        bare = re.sub("#[^\n]*", lambda comment: " " * len(comment[0]), gap)
        operator = bare.strip("() \t\n\\")
        low += bare.index(operator)
        start, stop = self._span(node)
        if stop - start > 90:
            start, stop = low, low + len(operator)
        changed = self._text[start:low] + after + self._text[low + len(operator) : stop]
        line = getattr(left, "end_lineno", 0)
        return Change(self._path, scope, line, kind, start, stop, self._text[start:stop], changed)

    def _source(self, node: ast.AST) -> str:
        start, stop = self._span(node)
        return self._text[start:stop]

    def _span(self, node: ast.AST) -> tuple[int, int]:
        """Return the span in characters. ast counts UTF-8 bytes within a line."""
        return (
            self._place(getattr(node, "lineno"), getattr(node, "col_offset")),  # noqa: B009 - any node has them
            self._place(getattr(node, "end_lineno"), getattr(node, "end_col_offset")),  # noqa: B009
        )

    def _place(self, line: int, offset: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:offset].decode())


def _says_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_call(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
