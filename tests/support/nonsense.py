"""A program whose sentences are nonsense: `python -m tests.support.nonsense MODULE,MODULE... -- ARGUMENTS`.

Each string of the named modules that contains a blank is replaced by a unique nonsense text. Docstrings are kept. Then
`checker` runs with the arguments. A decision that depends on the wording of a sentence then has a different result.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import CodeType, ModuleType


class _Scrambled(ast.NodeTransformer):
    """A transformer that scrambles every string with a blank. The fields of f-strings are separate nodes, and stay."""

    def __init__(self) -> None:
        self._count = 0

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        return node if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if not isinstance(node.value, str) or " " not in node.value:
            return node
        self._count += 1
        return ast.copy_location(ast.Constant(f"zq{self._count} "), node)


class _Loader(importlib.machinery.SourceFileLoader):
    """A loader that compiles a module with scrambled strings."""

    def source_to_code(self, data: object, path: object, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        tree = ast.parse(data)  # type: ignore[call-overload]
        code = compile(ast.fix_missing_locations(_Scrambled().visit(tree)), str(path), "exec")
        assert isinstance(code, CodeType)
        return code

    def get_code(self, fullname: str) -> CodeType:
        """Compile from the source in every case: the cache holds the unchanged module."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class _Finder(importlib.abc.MetaPathFinder):
    """A finder that loads the named modules with `_Loader`."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in self._names:
            return None
        found = importlib.machinery.PathFinder.find_spec(name, path, target)
        if found is not None and found.origin is not None:
            found.loader = _Loader(name, found.origin)
        return found


if __name__ == "__main__":
    names, _, *arguments = sys.argv[1:]
    sys.meta_path.insert(0, _Finder(names.split(",")))
    from checker.cli.main import main

    sys.exit(main(arguments))
