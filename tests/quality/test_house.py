"""The rules of the house that a program can check: unique names, modules whose names say something.

CONTRIBUTING.md explains the rules. A name in a stack trace, a review or a search must lead to one class.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("spec", "checker", "refimpl", "simulation")
FOLDERS = ("spec", "checker", "refimpl", "simulation", "harness", "benchmarks", "research")
EMPTY_NAMES = {
    "words",
    "kept",
    "parts",
    "past",
    "held",
    "told",
    "asked",
    "given",
    "telling",
    "desk",
    "r12",
    "r13",
    "r14",
}
"""Names of modules and functions that do not say what is inside."""


def files(folder: str, root: Path = ROOT) -> list[Path]:
    return sorted((root / folder).rglob("*.py"))


def definitions(path: Path, kind: type[ast.ClassDef] | type[ast.FunctionDef]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, kind):
            yield node.name


def repeated_classes(folder: str, root: Path = ROOT) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for path in files(folder, root):
        for name in definitions(path, ast.ClassDef):
            found[name].append(str(path.relative_to(root)))
    return {name: places for name, places in found.items() if len(places) > 1}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_class_name_occurs_twice_in_a_package(package: str) -> None:
    assert repeated_classes(package) == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_module_or_function_has_an_empty_name(folder: str) -> None:
    modules = [str(path.relative_to(ROOT)) for path in files(folder) if path.stem in EMPTY_NAMES]
    functions = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in files(folder)
        for name in definitions(path, ast.FunctionDef)
        if name.strip("_") in EMPTY_NAMES
    ]
    assert modules + functions == []


def test_a_repeated_class_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "checker").mkdir()
    for name in ("one", "other"):
        (tmp_path / "checker" / f"{name}.py").write_text("class Outcome:\n    pass\n")
    assert repeated_classes("checker", tmp_path) == {"Outcome": ["checker/one.py", "checker/other.py"]}
