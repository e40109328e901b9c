"""Ctrl-C, closed pipes, odd names and garbage: all end with a report or a message, and never with a stack trace."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.cli import tables
from checker.cli.options import OPTIONAL, option
from checker.engine import Stop
from checker.report import text as report_text
from checker.scenario import bundled
from checker.traces.formats import FORMATS
from tests.support.command_line import Ended, Write, changed, cli, python_m_checker, saved_trace, scenarios_in, zoo_cfg

PASSES = "file: zoo-3.cfg\nservers: [1, 2, 3]\ngrain: oracle\nsometimes: [AllSettled]\nexpect: passed\n"


def no_stack_trace(ended: Ended) -> bool:
    return "Traceback" not in ended.out + ended.err and "Exception ignored" not in ended.err


@pytest.fixture
def scenario(tmp_path: Path) -> Write:
    return scenarios_in(tmp_path)


# -- Ctrl-C --------------------------------------------------------------------------------------------------


def read_until(terminal: int, wanted: bytes) -> bytes:
    """The output on a terminal, until it contains `wanted` or the other side is closed."""
    shown = b""
    while wanted not in shown:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # closed
            return shown
        if not piece:
            return shown
        shown += piece
    return shown


@pytest.mark.parametrize(
    ("how", "by", "piped"),
    [
        ("--workers 1", signal.SIGINT, False),
        ("--workers 2", signal.SIGINT, True),
        ("--engine both", signal.SIGINT, True),
        ("--workers 2", signal.SIGTERM, False),
    ],
)
def test_20_and_a_report_of_what_was_seen_when_a_search_is_interrupted(
    how: str, by: signal.Signals, piped: bool
) -> None:
    """The interrupt comes after the first progress report; limits end the search if the signal is ignored.

    The report is on a terminal or in a pipe, which no engine knows: each has two of the four.
    """
    words = ["--nodes", "4", "--grain", "fine", "--rounds", "1", "--states", "30000000", "--time", "120s"]
    command = [sys.executable, "-m", "checker", *words, *how.split()]
    terminal, other_side = pty.openpty()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE if piped else other_side, stderr=other_side, env={**os.environ, "TERM": "xterm"}
    ) as process:
        os.close(other_side)
        shown = read_until(terminal, b"frontier")
        process.send_signal(by)
        shown += read_until(terminal, b"nothing that is ever shown")
        out = process.communicate(timeout=240)[0] or b""
    os.close(terminal)

    report = (out if piped else shown).decode()
    assert process.returncode == 20, (report + shown.decode())[-2000:]
    assert "incomplete: the search was interrupted; no violation among the " in report
    assert "search by the tables engine" in report
    assert b"Traceback" not in shown + out


def test_an_interrupt_between_two_runs_keeps_the_result_of_the_first(
    scenario: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(report_text.Progress):
        def __init__(self, name: str) -> None:
            if name == "second":
                raise KeyboardInterrupt
            super().__init__(name)

    monkeypatch.setattr(report_text, "Progress", Interrupted)
    names = ("first", "second", "third")
    files = [scenario(f"name: {name}\n{PASSES}", f"{name}.yaml") for name in names]
    ended = cli("run", *files)

    assert ended.code == 20
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert lines[0].startswith("first oracle")
    assert lines[0].endswith("passed (as expected)")
    assert lines[1] == "second oracle - - incomplete (expected: passed)"
    assert "third" not in ended.out
    assert lines[-1] == "2 of 3 runs, 1 as expected"


def test_an_interrupt_of_the_tables_is_no_defect_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    explore = tables.explore

    def interrupted(*arguments: Any, **named: Any) -> Any:
        result = explore(*arguments, **named)
        result.stop = Stop.INTERRUPTED
        return result

    monkeypatch.setattr(tables, "explore", interrupted)

    assert cli("tables") == Ended(20, "", "error: interrupted before there was anything to report\n")


# -- Output: terminals, pipes and names ----------------------------------------------------------------------


@pytest.mark.parametrize("words", [["list"], ["--nodes", "1"], ["--nodes", "2", "--json"], ["--help"]])
def test_a_closed_pipe_causes_no_stack_trace(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    ended = subprocess.run(
        [sys.executable, "-m", "checker", *words],
        stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=60, env=environment,
    )  # fmt: skip
    os.close(writer)

    assert ended.stderr == ""


def test_a_closed_pipe_loses_neither_the_verdict_nor_the_reports(scenario: Write) -> None:
    path = scenario(f"{PASSES}always: [{{NeverLeads: 3}}]\n")
    report = path.parent / "junit.xml"
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "checker", "run", str(path), "--junit", str(report)]
    ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    unheard = subprocess.run([*command[:4], "no-such.yaml"], stderr=writer, check=False, timeout=60)
    os.close(writer)

    assert (ended.returncode, ended.stderr) == (12, "")
    assert report.is_file()
    assert unheard.returncode == 150


def test_2_and_a_message_where_the_disk_is_too_full_for_the_report(scenario: Write) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "checker", "run", str(scenario(PASSES))]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60)

    assert ended.returncode == 2
    assert ended.stderr == "error: standard output cannot take what there is to say (No space left on device)\n"


@pytest.mark.parametrize("name", ["Wähler … 選挙", "\\uD800 half a pair"])
def test_a_name_that_the_output_cannot_hold_is_written_in_another_way(scenario: Write, name: str) -> None:
    path = scenario(f'{PASSES}name: "{name}"\n')
    folder = path.parent / "traces"
    ended = python_m_checker("run", path, "--traces", folder, env={**os.environ, "PYTHONIOENCODING": "ascii"})

    assert (ended.code, ended.err) == (0, "")
    assert {each.name.partition(".")[2] for each in folder.iterdir()} == {each.suffix for each in FORMATS.values()}


@pytest.mark.parametrize("form", ["text", "markdown", "mermaid", "shiviz"])
def test_control_characters_in_a_name_are_escaped(scenario: Write, form: str) -> None:
    path = scenario('name: "a\\e[2Jb\\nc"\nservers: [1, 2, 3]\nfile: zoo-3.cfg\nalways: [{NeverLeads: 3}]\n')
    ended = cli("run", path, "--format", form)

    assert ended.code == 12
    assert "a\\u001b[2Jb c" in ended.out.replace("\\\\", "\\").replace("\\[", "[")
    assert not {chr(code) for code in range(32)} - {"\n"} & set(ended.out)


def test_a_name_longer_than_a_file_can_have_is_cut(scenario: Write) -> None:
    path = scenario(f"{PASSES}name: {'R' * 400}\n")

    assert cli("run", path, "--traces", path.parent / "traces", "--format", "none").code == 0


# -- Arbitrary input: no stack trace, and a documented exit code ---------------------------------------------

CODES = {0, 1, 2, 11, 12, 20, 21, 150, 151, 152}
SHORT = ("--states", "30", "--time", "5s", "--workers", "1")
OPTIONS: dict[str, st.SearchStrategy[object]] = {
    "--nodes": st.integers(1, 4),
    "--observers": st.integers(0, 2),
    "--grain": st.sampled_from(["fine", "oracle"]),
    "--other-view": st.sampled_from(["1=1,2", "2=2,9", "3=1,2,3", "2=1,2,3,4,5", "1=1"]),
    "--rounds": st.integers(1, 3),
    "--capacity": st.integers(1, 3),
    "--late": st.integers(0, 4),
    "--depth": st.integers(0, 3),
    "--engine": st.sampled_from(["tables", "plain", "both"]),
    "--time": st.sampled_from(["0.001", "0.001s", "1h"]),
    "--memory": st.sampled_from(["1K", "4GiB", "2t"]),
    "--format": st.sampled_from([*FORMATS, "none"]),
    **{option(budget): st.integers(0, 2) for budget in OPTIONAL},
}
FLAGS = ["--established", "--json", "--levels", "--refine", "--verdict"]
plausible = st.fixed_dictionaries({}, optional=OPTIONS)
words = (
    st.sampled_from([*OPTIONS, *FLAGS, "-h", "1=1,2", "-1", "", "=", "\0"])
    | st.integers(-1, 7).map(str)
    | st.text(max_size=4)
)


@given(plausible, st.sets(st.sampled_from(FLAGS)))
@settings(max_examples=200, deadline=None, print_blob=True)
def test_any_options_together_end_with_a_code_of_the_design(chosen: dict[str, object], flags: set[str]) -> None:
    ended = cli(*(word for pair in chosen.items() for word in pair), *sorted(flags), *SHORT)

    assert ended.code in CODES - {1, 150, 151}, "they name no file, and a run without expectations does not end with 1"
    assert (ended.code == 2) == (ended.out == "")


@given(st.lists(words, max_size=5))
@settings(max_examples=100, deadline=None, print_blob=True)
def test_any_words_end_with_a_code_of_the_design(given_words: list[str]) -> None:
    assert cli(*given_words, *SHORT).code in CODES


@given(
    st.sampled_from(["run", "replay", "quorums", "list", "tables"]),
    st.lists(words | st.sampled_from([str(path) for path in bundled()][:3]), min_size=1, max_size=4),
)
@settings(max_examples=150, deadline=None, print_blob=True)
def test_any_words_after_a_command_end_with_a_code_of_the_design(command: str, given_words: list[str]) -> None:
    limits = SHORT if command == "run" else ()
    if command == "run" and not any(word.endswith(".yaml") for word in given_words):
        given_words = [*given_words, "missing.yaml"]  # without a file, all shipped scenarios would run
    ended = cli(command, *given_words, *limits)

    assert ended.code in CODES


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("anything")


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None, print_blob=True)
def test_any_bytes_as_a_scenario_are_a_bad_scenario(folder: Path, content: bytes) -> None:
    (folder / "any.yaml").write_bytes(content)
    ended = cli("run", folder / "any.yaml")

    assert (ended.code, ended.out) == (150, "")


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None, print_blob=True)
def test_any_bytes_as_a_trace_are_refused(folder: Path, content: bytes) -> None:
    (folder / "any.itf.json").write_bytes(content)
    ended = cli("replay", folder / "any.itf.json")

    assert ended.code in (2, 150), "2 if they are no text, 150 if they are no trace"
    assert ended.out == ""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return saved_trace(tmp_path_factory.mktemp("traces"))


def test_a_trace_that_is_saved_replays(trace: dict[str, Any], tmp_path: Path) -> None:
    """The next tests spoil it."""
    (tmp_path / "t.itf.json").write_text(json.dumps(trace))
    assert cli("replay", tmp_path / "t.itf.json").code == 0


SOURCE = ("#meta", "source")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("#meta", "quorate"), 99),
        (("#meta", "property"), "OneLeader"),
        (("#meta", "clause"), "something else"),
        (("#meta", "moves"), []),
        (("#meta", "moves", 0, "arguments"), [9, "another file"]),
        (("states", 1, "server.1"), {"state": "LEADING"}),
        (SOURCE, {}),
        (SOURCE, {"kind": "recipe"}),
        (SOURCE, {"kind": "scenario", "text": "servers: 1", "file": "s.yaml", "files": {}}),
        (SOURCE, {"kind": "refined", "of": {"kind": "refined"}}),
    ],
)
def test_150_for_a_trace_that_does_not_run_as_it_says(
    trace: dict[str, Any], tmp_path: Path, path: tuple[str | int, ...], value: object
) -> None:
    (tmp_path / "t.itf.json").write_text(json.dumps(changed(trace, path, value)))
    ended = cli("replay", tmp_path / "t.itf.json")

    assert (ended.code, ended.out) == (150, "")
    assert ended.err.startswith("error: ")


def paths_in(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [each for key, item in items for each in ((*path, key), *paths_in(item, (*path, key)))]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(data=st.data())
@settings(max_examples=200, deadline=None, print_blob=True)
def test_a_trace_with_any_other_value_in_one_place_replays_or_is_refused(
    data: st.DataObject, trace: dict[str, Any], folder: Path
) -> None:
    path = data.draw(st.sampled_from(paths_in(trace)))
    (folder / "changed.itf.json").write_text(json.dumps(changed(trace, path, data.draw(json_values))))
    ended = cli("replay", folder / "changed.itf.json")

    assert ended.code in (0, 150)
    assert (ended.code == 0) == (ended.err == "")


cfg_lines = st.sampled_from(
    ["server.1=a:1:2", "server.2=b:1:2:observer", "server.x=", "group.1=1:2", "weight.1=-1", "initLimit=5", "=", "\\"]
)


@given(st.binary(max_size=200) | st.lists(cfg_lines, max_size=6).map(lambda lines: "\n".join(lines).encode()))
@settings(max_examples=100, deadline=None, print_blob=True)
def test_any_bytes_as_a_zoo_cfg_are_compared_or_refused(folder: Path, content: bytes) -> None:
    (folder / "any.cfg").write_bytes(content)
    (folder / "good.cfg").write_text(zoo_cfg(1, 2, 3))
    ended = cli("quorums", folder / "any.cfg", folder / "good.cfg")

    assert ended.code in (0, 12, 151)
    assert (ended.code == 151) == (ended.out == "")
