"""Models in Python files: the commands, the plugin for pytest, and one line for every mistake.

The counts of `COUNTER` are counted by hand: the states 0, 1 and 2 are reached by one step each, and 3 violates.
"""

from pathlib import Path
from xml.etree import ElementTree as Tree

import pytest

from checker.scenario import load
from tests.support.command_line import cli
from tests.support.gate import load_kernels

pytest_plugins = ["pytester"]

COUNTER = """\
from dataclasses import dataclass

from checker.engine import Finding, Property, Read
from checker.kit import Machine, Reaction, network_model
from beside import LIMIT


@dataclass(frozen=True)
class Count:
    number: int = 0


def model(most=LIMIT, *, wrong=False):
    def choices(count):
        return ["add"] if count.number < most else []

    def check(count):
        return Finding("it is 3 or more", (("count", count.number),)) if count.number >= 3 else None

    def add(count, choice):
        return Reaction(Count(count.number + 1))

    counter = Machine("counter", Reaction(Count()), choices=choices, on_choice=add)
    return network_model("counter", [counter], properties=[Property("BelowThree", (Read("counter"),), check)])


ready = model()
number = 7


def returns_number():
    return 7


def raises():
    raise ValueError("two\\nlines")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "counter.py").write_text(COUNTER)
    (tmp_path / "beside.py").write_text("LIMIT = 2\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_violation_has_its_code_and_its_run() -> None:
    ended = cli("run", "counter.py:model(5)", "--junit", "junit.xml", "--traces", "traces")
    assert ended.code == 12
    assert ended.out.startswith("violated: BelowThree at depth 3: it is 3 or more (count = 3)\n")
    assert "add counter" in ended.out
    case = Tree.parse("junit.xml").find(".//testcase")
    assert case is not None
    assert (case.get("name"), case.get("classname"), case.get("status")) == ("counter", "counter.py", "violated")
    line = str(COUNTER.splitlines().index("def model(most=LIMIT, *, wrong=False):") + 1)
    assert {each.get("name"): each.get("value") for each in Tree.parse("junit.xml").iter("property")}["line"] == line
    assert "counter-BelowThree.svg" in {path.name for path in Path("traces").iterdir()}


def test_a_changed_file_is_another_source(folder: Path) -> None:
    before = load(Path("counter.py:model")).source
    (folder / "counter.py").write_text(COUNTER + "\n")
    after = load(Path("counter.py:model")).source
    assert {key for key in before if before[key] != after[key]} == {"digest"}


def test_a_file_beside_is_importable_only_while_it_loads() -> None:
    import sys

    before = list(sys.path)
    assert cli("run", "counter.py:model").code == 0
    assert sys.path == before


# -- pytest --------------------------------------------------------------------------------------------------


PLUGIN = ("-p", "no:quorate", "-p", "checker.pytest_plugin", "-p", "no:cacheprovider")


def test_models_of_the_ini_file_are_tests(pytester: pytest.Pytester, tmp_path_factory: pytest.TempPathFactory) -> None:
    load_kernels(tmp_path_factory.mktemp("kernels"))
    models = pytester.mkdir("models")
    (models / "counter.py").write_text(COUNTER)
    (models / "beside.py").write_text("LIMIT = 2\n")
    names = ["counter.py:model", "counter.py:model(5)", "counter.py:absent"]
    pytester.makeini("[pytest]\nquorate_models =\n" + "".join(f"    models/{name}\n" for name in names))
    result = pytester.runpytest_inprocess(*PLUGIN)
    result.assert_outcomes(passed=1, failed=2)
    text = result.stdout.str()
    assert "violated: BelowThree at depth 3: it is 3 or more (count = 3)" in text
    assert "run it again: quorate run 'models/counter.py:model(5)'" in text
    assert "it has no 'absent'" in text


def test_an_invalid_name_in_the_ini_file_is_a_usage_error(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nquorate_models = models/counter.py\n")
    result = pytester.runpytest_inprocess(*PLUGIN)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "quorate_models: 'models/counter.py' is not a model; write FILE.py:NAME" in result.stderr.str()
