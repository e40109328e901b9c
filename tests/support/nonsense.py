"""Command lines of `checker` with every sentence replaced by nonsense: `python -m tests.support.nonsense`.

Standard input is a JSON list of command lines, each a list of words. Standard output is a JSON list with an `Ended` for
each. With the argument `--nonsense` an import hook scrambles the sentences of all modules of `checker` first, so a
decision that depends on the wording of a sentence then has a different result.

Rules of this module:

- A sentence is a string, or a literal part of an f-string, with at least two words (`is_sentence`). Docstrings, keys of
  dictionaries, regular expressions, format specifications, values of enumerations and the arguments of argparse stay:
  they are for machines.
- Only letters change, each to another letter of its case. So lines, columns, digits and placeholders stay, and two
  outputs are compared by their shape (`shape_of`).
- Progress is not shown: its lines depend on the speed of the machine and on the kernels that were compiled before.
- Two equal sentences in different places become different ones: a comparison of the two fails.
"""

import ast
import contextlib
import importlib.abc
import importlib.machinery
import io
import json
import re
import subprocess
import sys
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from types import CodeType, ModuleType
from typing import NamedTuple

PACKAGE = "checker"
CRASHED = -1
FORMATS = frozenset((
    "checker.rollout.scenarios", "checker.rollout.reconfig.answers", "checker.rollout.reconfig.commands",
    "checker.rollout.output.data",
))  # fmt: skip
"""The modules whose strings are parts of YAML, which the checker reads again, of JSON, or of commands for ZooKeeper."""
CODES = frozenset({"disjoint quorums", "bad configuration", "bad command"})
"""The values of JSON fields for machines that have a blank."""
WORD = re.compile(r"[A-Za-z]+")
PLACEHOLDER = re.compile(r"(\{[^{}]*\})")
MEASURED = re.compile(
    r"""(?x) ::[-\w]*(?:::)?[0-9a-f]{32}(?:::)?   # the token of a workflow command
    | \b\d[\d,.]*\ ?[A-Za-z]{1,2}\b                     # seconds, sizes
    | (?<=\()\d[\d,]*(?=\ )                        # (bytes a state), (states/s)
    | \b\d[\d,]*(?=\ \w+/\w)                       # records/s
    | (?:time|timestamp|value)="[^"]*"            # of JUnit XML
    """
)
"""Times, sizes and random tokens."""
FOR_MACHINES = frozenset({"add_argument", "add_parser", "ArgumentParser", "namedtuple", "add_subparsers"})
"""The functions whose arguments are no sentences, as are those of `re`."""


class Ended(NamedTuple):
    """The exit code and the output of a command line."""

    code: int
    out: str
    err: str


def run_all(commands: Iterable[Sequence[object]], *, nonsense: bool, code: str = "") -> list[Ended]:
    """The results of command lines in one fresh process, after some code, with or without nonsense."""
    words = [[str(word) for word in command] for command in commands]
    modes = ["--nonsense"] if nonsense else []
    ended = subprocess.run(
        [sys.executable, "-m", "tests.support.nonsense", *modes, *(["--code", code] if code else [])],
        input=json.dumps(words), cwd=Path(__file__).parents[2], capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return [Ended(*each) for each in json.loads(ended.stdout)]


def shape_of(text: str) -> str:
    """A text with its letters replaced, each by one of its case, and without the figures that differ by the run.

    Mermaid has a code in the place of a letter of the word "end".
    """
    text = re.sub(r"#(\d+);", lambda code: chr(int(code[1])), MEASURED.sub("<measured>", text))
    return re.sub(r"[A-Z]", "X", re.sub(r"[a-z]", "x", text))


class _Scrambler(ast.NodeTransformer):
    """A transformer that scrambles every sentence of a module."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        return node if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if not isinstance(node.value, str) or not is_sentence(node.value):
            return node
        shift = 1 + (node.lineno * 7 + node.col_offset) % 25
        return ast.copy_location(ast.Constant(scrambled(node.value, shift)), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        called = ast.unparse(node.func)
        name = called.rpartition(".")[2]
        of_list = name == "split" and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Constant)
        return node if name in FOR_MACHINES or called.startswith("re.") or of_list else self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        node.values = [self.visit(value) for value in node.values]
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        node.value = self.visit(node.value)
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        node.value = self.visit(node.value)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        if not any(re.search("Enum|Action", ast.unparse(base)) for base in node.bases):
            return self.generic_visit(node)
        for statement in node.body:
            if not isinstance(statement, ast.Assign):
                self.visit(statement)
            elif isinstance(statement.value, ast.Tuple):  # the value of an enumeration, and sentences about it
                statement.value.elts[1:] = [self.visit(part) for part in statement.value.elts[1:]]
        return node


def is_sentence(text: str) -> bool:
    """Whether a text has two words, one of them longer than an option such as `-e`, with a blank between them."""
    words = WORD.findall(PLACEHOLDER.sub(" ", text))
    return text not in CODES and " " in text.strip() and len(words) > 1 and max(map(len, words)) > 2


def scrambled(text: str, shift: int) -> str:
    """A text with each letter replaced by the one that is `shift` places behind it; placeholders stay."""
    lower, upper = (letters[shift:] + letters[:shift] for letters in (ascii_lowercase, ascii_uppercase))
    table = str.maketrans(ascii_lowercase + ascii_uppercase, lower + upper)
    return "".join(part if PLACEHOLDER.fullmatch(part) else part.translate(table) for part in PLACEHOLDER.split(text))


class _Loader(importlib.machinery.SourceFileLoader):
    """A loader that compiles a module with scrambled sentences."""

    def source_to_code(self, data: object, path: object, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        tree = ast.parse(data)  # type: ignore[call-overload]
        code = compile(ast.fix_missing_locations(_Scrambler().visit(tree)), str(path), "exec")
        assert isinstance(code, CodeType)
        return code

    def get_code(self, fullname: str) -> CodeType:
        """Compile from the source in every case: the cache holds the unchanged module."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class _Finder(importlib.abc.MetaPathFinder):
    """A finder that loads the modules of the package with `_Loader`."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] != PACKAGE or name in FORMATS:
            return None
        found = importlib.machinery.PathFinder.find_spec(name, path, target)
        if found is not None and found.origin is not None:
            found.loader = _Loader(name, found.origin)
        return found


def _run(words: Sequence[str]) -> Ended:
    from checker.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words)
        except Exception:  # the comparison shows it
            code = CRASHED
            traceback.print_exc()
    return Ended(code, out.getvalue(), err.getvalue())


if __name__ == "__main__":
    if "--nonsense" in sys.argv:
        sys.meta_path.insert(0, _Finder())
    from checker.report import text

    text.Progress._show = lambda *_: None  # type: ignore[method-assign]
    if "--code" in sys.argv:
        exec(sys.argv[sys.argv.index("--code") + 1])
    print(json.dumps([_run(words) for words in json.load(sys.stdin)]))
