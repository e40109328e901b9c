"""No module and no folder imports itself through others: neither graph of imports has circles.

The graph has an edge for each import statement of a module: at its top, inside a function, and below TYPE_CHECKING.
Python accepts circles of the last two kinds, but a reader cannot understand one of their modules without the others.

The graph of a folder has its modules and its folders, and an edge where anything inside one imports anything inside
another. A folder in a circle is not a subject of its own: what points backwards stands in the wrong folder.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

REMAINING: dict[str, set[frozenset[str]]] = {
    "spec": set(),
    "checker": set(),
    "refimpl": set(),
    "simulation": set(),
}
"""The circles that are left in each package. No circle may be added; a circle that is gone must be deleted here."""


FOLDERS = (*REMAINING, "harness", "benchmarks", "research")
STARTS_FROM_ABOVE = {
    ("refimpl.__main__", "simulation.command"),  # `python -m refimpl simulate`; nothing imports a `__main__`
}
"""The imports that the graphs of folders leave out."""


def modules(root: Path, package: str) -> dict[str, Path]:
    """Return the files of a package by the names of their modules."""
    found = {}
    for path in sorted((root / package).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(name: str, path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """Yield the modules of the project that a module imports; a name of a package is a module if there is one."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                target = f"{source}.{alias.name}"
                if target in known or source in known:
                    yield target if target in known else source


def circles(graph: Mapping[str, Iterable[str]]) -> set[frozenset[str]]:
    """Return the sets of modules that import each other, directly or through others (Tarjan's components)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found: set[frozenset[str]] = set()

    def visit(name: str) -> None:
        order[name] = lowest[name] = len(order)
        path.append(name)
        for target in graph[name]:
            if target not in order:
                visit(target)
            if target in path:
                lowest[name] = min(lowest[name], lowest[target])
        if lowest[name] == order[name]:
            component = path[path.index(name) :]
            del path[path.index(name) :]
            if len(component) > 1 or name in graph[name]:
                found.add(frozenset(component))

    for name in graph:
        if name not in order:
            visit(name)
    return found


def graph_of(root: Path, *packages: str) -> dict[str, set[str]]:
    known = {name: path for package in packages for name, path in modules(root, package).items()}
    return {name: set(imported(name, path, known)) for name, path in known.items()}


@pytest.mark.parametrize("package", REMAINING)
def test_a_package_has_no_import_circle_beyond_those_listed(package: str) -> None:
    assert circles(graph_of(ROOT, package)) == REMAINING[package]


def test_no_circle_spans_packages() -> None:
    within = {circle for package in REMAINING for circle in circles(graph_of(ROOT, package))}
    assert circles(graph_of(ROOT, *REMAINING)) == within


def test_circles_of_every_kind_are_found(tmp_path: Path) -> None:
    """A function-local import, one below TYPE_CHECKING, and a relative one form circles."""
    package = tmp_path / "p"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "a.py").write_text("from p import b\n")
    (package / "b.py").write_text("def f():\n    from p.a import x\n")
    (package / "c.py").write_text("if TYPE_CHECKING:\n    from p.d import X\n")
    (package / "d.py").write_text("from . import c, e\n")
    (package / "e.py").write_text("import p.a\n")
    assert circles(graph_of(tmp_path, "p")) == {frozenset({"p.a", "p.b"}), frozenset({"p.c", "p.d"})}


def graphs_of_folders(root: Path, *packages: str) -> dict[str, dict[str, set[str]]]:
    """Return for each folder which of its modules and folders import which others; the root is `.`."""
    known = {name: path for package in packages for name, path in modules(root, package).items()}
    graphs: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for name, path in known.items():
        for target in set(imported(name, path, known)) - {name}:
            if (name, target) in STARTS_FROM_ABOVE:
                continue
            one, other = path.relative_to(root).parts, known[target].relative_to(root).parts
            shared = next(i for i, (mine, its) in enumerate(zip(one, other, strict=False)) if mine != its)
            graph = graphs["/".join(one[:shared]) or "."]
            graph[one[shared]].add(other[shared])
            graph[other[shared]] |= set()
    return graphs


def test_no_folder_imports_itself_through_others() -> None:
    graphs = graphs_of_folders(ROOT, *FOLDERS)
    assert len(graphs) > 10
    assert {folder: found for folder, graph in graphs.items() if (found := circles(graph))} == {}


def test_every_exception_is_needed() -> None:
    known = {name: path for package in FOLDERS for name, path in modules(ROOT, package).items()}
    assert all(target in imported(name, known[name], known) for name, target in STARTS_FROM_ABOVE)


def test_circles_of_folders_are_found(tmp_path: Path) -> None:
    """No module is in a circle; `a` and `b` are, and so are the folder `c` and the module `d` beside it."""
    for folder in ("a", "b", "c"):
        (tmp_path / "p" / folder).mkdir(parents=True)
    for path, line in {
        "a/one": "from p.b import one",
        "b/one": "",
        "b/two": "def f():\n    import p.a.two",
        "a/two": "",
        "c/one": "from p import d",
        "c/two": "",
        "d": "import p.c.two",
    }.items():
        (tmp_path / "p" / f"{path}.py").write_text(f"{line}\n")
    assert not circles(graph_of(tmp_path, "p"))
    found = circles(graphs_of_folders(tmp_path, "p")["p"])
    assert found == {frozenset({"a", "b"}), frozenset({"c", "d.py"})}
