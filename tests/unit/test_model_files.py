"""Models in Python files: the commands, the plugin for pytest, and one line for every mistake.

The counts of `COUNTER` are counted by hand: the states 0, 1 and 2 are reached by one step each, and 3 violates.
"""

import json
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


@pytest.mark.parametrize("name", ["ready", "model", "model()", "model(1)", "model(most=1)"])
def test_a_model_passes(name: str) -> None:
    ended = cli("run", f"counter.py:{name}")
    assert (ended.code, ended.err) == (0, "")
    states = 2 if "1" in name else 3
    assert ended.out.startswith(f"passed: no violation, space exhausted: {states} states\n")


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


def test_a_trace_is_replayed_with_the_model_that_its_user_names() -> None:
    cli("run", "counter.py:model(5)", "--traces", "traces")
    trace = "traces/counter-BelowThree.itf.json"
    refused = cli("replay", trace)
    assert refused.code == 150
    assert refused.err == (
        "error: the trace is of a model in a Python file, whose code runs only if you name it: "
        "replay FILE --model counter.py:model(5), or explore counter.py:model(5) --trace FILE\n"
    )
    again = cli("replay", trace, "--model", "counter.py:model(5)", "--format", "none")
    assert (again.code, again.out) == (0, "replayed: 3 steps, and BelowThree again: it is 3 or more\n")
    other = cli("replay", trace, "--model", "counter.py:model(2)", "--format", "none")
    assert other.code == 150
    assert other.err.startswith("error: the trace does not replay: in step 3 it says ")


def test_json_and_the_plain_engine() -> None:
    ended = cli("run", "counter.py:model", "--json", "--engine", "both")
    assert ended.code == 0
    assert "exhausted: 3 states" in json.loads(ended.out)["runs"][0]["sentence"]


def test_a_changed_file_is_another_source(folder: Path) -> None:
    before = load(Path("counter.py:model")).source
    (folder / "counter.py").write_text(COUNTER + "\n")
    after = load(Path("counter.py:model")).source
    assert {key for key in before if before[key] != after[key]} == {"digest"}


MISTAKES = [
    ("absent.py:model", "absent.py: it cannot be read (No such file or directory); name a Python file"),
    ("counter.py", "counter.py: it is a Python file without the name of a model; write counter.py:NAME"),
    ("counter.py:modle", "counter.py: it has no 'modle'; did you mean model?"),
    ("counter.py:1+1", "counter.py: '1+1' is not the name of a model; write FILE.py:NAME or"),
    ("counter.py:model(x)", "counter.py: 'model(x)' is not the name of a model; write FILE.py:NAME or"),
    ("counter.py:model(**{})", "counter.py: 'model(**{})' is not the name of a model; write FILE.py:NAME or"),
    ("counter.py:", "counter.py: '' is not the name of a model; write FILE.py:NAME or"),
    ("counter.py:number", "counter.py:1: 'number' is not a function but int; name a checker.engine.Model, or"),
    ("counter.py:ready(1)", "counter.py:1: 'ready' is not a function but Model; write ready without parentheses"),
    ("counter.py:returns_number", "'returns_number' does not return a Model but int; name a checker.engine.Model"),
    ("counter.py:raises", "raises() raises ValueError: two lines; correct it"),
    ("counter.py:model(1, 2)", "counter.py: model(1, 2) raises TypeError: model() takes from 0 to 1 positional"),
]


@pytest.mark.parametrize(("name", "said"), MISTAKES, ids=[name for name, _ in MISTAKES])
@pytest.mark.parametrize("command", ["run", "explore"])
def test_a_mistake_is_one_line(name: str, said: str, command: str) -> None:
    ended = cli(command, name)
    assert (ended.code, ended.out) == (150, "")
    assert said in ended.err
    assert ended.err.count("\n") == 1


def test_a_mistake_during_the_exploration_is_one_line() -> None:
    ended = cli("run", "counter.py:model('x')")
    assert (ended.code, ended.err) == (150, "")
    assert ended.out.startswith("error: the rule 'choices of counter' raises TypeError: '<' not supported")
    assert ended.out.count("\n") == 1


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = (\n", "wrong.py:1: it is not Python ('(' was never closed); correct it"),
        (
            "import nothing_here\n",
            "wrong.py:1: importing it raises ModuleNotFoundError: No module named 'nothing_here'",
        ),
        ("\n\n1 / 0\n", "wrong.py:3: importing it raises ZeroDivisionError: division by zero; correct it"),
        ("raise SystemExit(0)\n", "wrong.py:1: importing it raises SystemExit: 0; correct it"),
        ("\0", "wrong.py: it is not Python ("),
        ("from checker.engine import Model\nx = Model('m', (), (), (), ())\ny = x\n", "wrong.py: it has no 'model'"),
    ],
)
def test_a_file_that_cannot_be_imported_is_one_line(folder: Path, code: str, said: str) -> None:
    (folder / "wrong.py").write_text(code)
    ended = cli("run", "wrong.py:model")
    assert ended.code == 150
    assert said in ended.err
    assert ended.err.count("\n") == 1


def test_a_file_beside_is_importable_only_while_it_loads() -> None:
    import sys

    before = list(sys.path)
    assert cli("run", "counter.py:model").code == 0
    assert sys.path == before


def test_a_variant_and_a_release_change_nothing() -> None:
    ended = cli("run", "counter.py:model", "--like", "3.8.4")
    assert (ended.code, ended.err) == (
        2,
        "error: like 3.8.4: it changes nothing in a model of your own; name a scenario\n",
    )


def test_a_scenario_and_a_model_run_together() -> None:
    ended = cli("run", "counter.py:model", "counter.py:model(5)", "--format", "none")
    assert ended.code == 12
    assert [line.split()[-1] for line in ended.out.splitlines()[:2]] == ["passed", "violated"]


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
    assert "run it again: python -m checker run 'models/counter.py:model(5)'" in text
    assert "it has no 'absent'" in text


def test_an_invalid_name_in_the_ini_file_is_a_usage_error(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nquorate_models = models/counter.py\n")
    result = pytester.runpytest_inprocess(*PLUGIN)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "quorate_models: 'models/counter.py' is not a model; write FILE.py:NAME" in result.stderr.str()
