"""The page on stability has the public names of the engine and of the kit.

A name, a parameter or a method that is removed or renamed changes the list, and so the page in the same commit:
`pytest --rewrite-transcripts` writes it. The difference must keep the rules of the page.
"""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

from checker import engine, kit
from checker.command import ExitCode
from checker.engine import model
from tests.support.isolation import rewrites

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference-stability.md"
BLOCK = re.compile(r"(?<=```text\n)checker\.engine\.model\n.*?(?=```)", re.DOTALL)
OF_TYPES = {"Installed", "Projection", "Unit", "Trivial"}
"""The names of types in annotations of `checker.engine.model`, which `checker.engine` does not repeat."""


def defined(module: ModuleType) -> list[str]:
    """The public names that a module defines itself."""
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    names: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return sorted(name for name in names if not name.startswith("_"))


def form(name: str, value: Any) -> str:
    """A name with its parameters, `=` after those that may be left out, and the further public names of a class."""
    if isinstance(value, type) and issubclass(value, Enum):
        members = ", ".join(member.name for member in value)
        return f"{name}: {members}" if members else name
    if not callable(value) or not getattr(value, "__module__", "").startswith("checker."):
        return name
    if isinstance(value, type) and issubclass(value, Exception):
        return name
    parameters = inspect.signature(value).parameters.values()
    words = [one.name if one.default is inspect.Parameter.empty else f"{one.name}=" for one in parameters]
    return f"{name}({', '.join(words)}){''.join(f' .{more}' for more in methods(value))}"


def methods(value: Any) -> Iterator[str]:
    """The public methods and properties of a class, without its fields."""
    for name, member in sorted(vars(value).items()) if isinstance(value, type) else ():
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property | classmethod)):
            yield name


def listed() -> str:
    """The block of the page."""
    lines = []
    for module, names in ((model, defined(model)), (kit, sorted(kit.__all__))):
        lines += [module.__name__, *(f"  {form(name, getattr(module, name))}" for name in names)]
    return "\n".join(lines) + "\n"


def test_the_page_has_the_public_names_with_their_parameters() -> None:
    text = PAGE.read_text(encoding="utf-8")
    if rewrites():
        text = BLOCK.sub(lambda _: listed(), text)
        PAGE.write_text(text, encoding="utf-8")
    assert BLOCK.findall(text) == [listed()], "pytest --rewrite-transcripts writes it"


def test_the_engine_exports_what_its_models_are_made_of() -> None:
    assert set(defined(model)) - OF_TYPES <= set(engine.__all__)
    assert all(hasattr(engine, name) for name in engine.__all__)


def test_the_page_has_every_exit_code() -> None:
    (row,) = re.findall(r"^\| exit codes \| ([^|]*) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(map(int, re.findall(r"\d+", row))) == sorted(ExitCode)


def test_a_removed_parameter_is_seen() -> None:
    def add(name: str, size: int = 1) -> None: ...

    add.__module__ = "checker.x"
    assert form("add", add) == "add(name, size=)"
    assert form("TRIVIAL", importlib.import_module("checker.engine").TRIVIAL) == "TRIVIAL"
