"""Every exit code of the design, reached from the command line.

Exit codes: 0 as expected, 1 passed where another verdict was expected, 2 bad command line, 11 deadlock, 12 violated,
20 incomplete, 21 vacuous, 150 bad scenario, 151 bad configuration file, 152 too large for the memory given.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from checker.cli.main import COMMANDS
from tests.support.command_line import Ended, Write, changed, cli, python_m_checker, saved_trace, scenarios_in

SERVERS = "file: zoo-3.cfg\nservers: [1, 2, 3]\n"
PASSES = SERVERS + "grain: oracle\nsometimes: [AllSettled]\n"
# The highest of three equal servers wins if it takes part: "3 never leads" is wrong, "1 leads" never happens (R7).
VIOLATED = SERVERS + "grain: oracle\nalways: [{NeverLeads: 3}]\n"
VACUOUS = SERVERS + "grain: oracle\nsometimes: [{Leads: 1}]\n"
# With two servers one loss stops service (R2).
DEADLOCK = "file: zoo-2.cfg\nservers: [1, 2]\ngrain: oracle\nfaults: {crashes: 1}\nfinal: [Serves]\n"
LARGER = SERVERS + "rounds: 2\nfaults: {crashes: 1, restarts: 1}\n"


@pytest.fixture
def scenario(tmp_path: Path) -> Write:
    (tmp_path / "broken.cfg").write_text("initLimit=5\nserver.1=zoo1:2888\n")
    return scenarios_in(tmp_path)


# -- 0, 1 and the verdicts' own codes ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (PASSES, "passed"),
        (VIOLATED, "violated"),
        (DEADLOCK, "deadlock"),
        (VACUOUS, "vacuous"),
        (LARGER + "limits: {states: 1}\n", "incomplete"),
    ],
)
def test_0_where_the_verdict_is_the_expected_one_whichever_it_is(scenario: Write, text: str, verdict: str) -> None:
    ended = cli("run", scenario(f"{text}expect: {verdict}\n"))

    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"{verdict}: ")
    assert ended.out.splitlines()[0].endswith("(as expected)")


def test_1_where_a_violation_was_expected_and_it_passed(scenario: Write) -> None:
    ended = cli("run", scenario(PASSES + "expect: violated\n"))

    assert ended.code == 1
    assert ended.out.splitlines()[0].endswith("(expected: violated)")


@pytest.mark.parametrize(
    ("text", "code"),
    [(VIOLATED, 12), (DEADLOCK, 11), (VACUOUS, 21), (LARGER + "limits: {states: 1}\n", 20)],
)
@pytest.mark.parametrize("expectation", ["", "expect: passed\n"])
def test_the_verdicts_own_code_where_it_was_not_expected(
    scenario: Write, text: str, code: int, expectation: str
) -> None:
    assert cli("run", scenario(text + expectation)).code == code


@pytest.mark.parametrize(
    ("text", "expected", "code"), [(VIOLATED, "violated", 12), (DEADLOCK, "deadlock", 11), (PASSES, "violated", 0)]
)
def test_verdict_gives_the_verdicts_own_code_whatever_was_expected(
    scenario: Write, text: str, expected: str, code: int
) -> None:
    assert cli("run", scenario(f"{text}expect: {expected}\n"), "--verdict").code == code


def test_the_code_of_several_runs_is_the_gravest(scenario: Write) -> None:
    files = [scenario(text, f"{n}.yaml") for n, text in enumerate((PASSES, DEADLOCK, VIOLATED))]

    assert cli("run", *files).code == 12
    assert cli("run", files[0], files[2], files[1]).code == 12
    assert cli("run", files[0], files[0]).code == 0


def test_a_depth_that_was_asked_for_is_not_incomplete(scenario: Write) -> None:
    """All three start together, and the oracle elects a leader in one step."""
    ended = cli("run", scenario(SERVERS + "grain: oracle\nsometimes: [Elected]\n"), "--depth", 1)

    assert (ended.code, ended.out.splitlines()[0]) == (0, "passed: no violation within depth 1")


# -- 20, 21, 152 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [("--states", "10", "the number of states given (10)"), ("--time", "0.000001s", "the time given (1e-06 s)")],
)
@pytest.mark.parametrize("engine", ["tables", "plain", "both"])
def test_20_where_a_limit_ends_the_search(scenario: Write, option: str, value: str, said: str, engine: str) -> None:
    ended = cli("run", scenario(LARGER), option, value, "--engine", engine)

    assert ended.code == 20
    assert ended.out.startswith(f"incomplete: {said} ended the search; no violation among the ")


def test_a_limit_of_the_command_line_takes_the_place_of_the_scenarios_own(scenario: Write) -> None:
    path = scenario(PASSES + "limits: {states: 1}\n")

    assert cli("run", path).code == 20
    assert cli("run", path, "--states", 10**6).code == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (VACUOUS, "Leads(1) was never witnessed"),
        (PASSES + "faults: {heals: 1}\n", "the action heal never fired"),
    ],
)
def test_21_where_what_was_hoped_for_never_happened(scenario: Write, text: str, said: str) -> None:
    ended = cli("run", scenario(text))

    assert ended.code == 21
    assert ended.out.startswith(f"vacuous: {said} (no violation, space exhausted: ")


def test_21_for_a_depth_at_which_nobody_can_have_been_elected() -> None:
    """Three servers that have not started need more than one step."""
    assert cli("--grain", "fine", "--depth", 1).code == 21


def test_152_where_the_memory_given_is_too_small() -> None:
    ended = python_m_checker("--grain", "fine", "--nodes", 3, "--memory", "1M")

    assert ended.code == 152
    assert ended.out.startswith("incomplete: the state space is too large for the memory given (1 MB); ")


# -- 2: the command line -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--nodes 0", "argument --nodes: '0' is not a whole number from 1 to 7"),
        ("--nodes 8", "argument --nodes: '8' is not a whole number from 1 to 7"),
        ("--nodes three", "argument --nodes: 'three' is not a whole number"),
        ("--nodes", "argument --nodes: expected one argument"),
        ("--depth -1", "argument --depth: '-1' is not a whole number from 0 to 1000000"),
        ("--states 0", "argument --states: '0' is not a whole number from 1 to"),
        ("--time soon", "argument --time: 'soon' is not a time; write 60s, 5m or 1h"),
        ("--time 0", "argument --time: '0' is not a time"),
        ("--time " + "9" * 400, "is not a time"),
        ("--memory lots", "argument --memory: 'lots' is not a size; write 500M or 4G"),
        ("--memory 0", "argument --memory: '0' is not a size"),
        ("--memory " + "9" * 400, "is not a size"),
        ("--workers 0", "argument --workers: '0' is not a whole number from 1 to 64"),
        ("--workers 65", "argument --workers: '65' is not a whole number from 1 to 64"),
        ("--seed -1", "argument --seed: '-1' is not a whole number from 0 to 1000000000"),
        ("--crashes -1", "argument --crashes: '-1' is not a whole number from 0 to 9"),
        ("--engine turbo", "argument --engine: invalid choice: 'turbo'"),
        ("--grain coarse", "argument --grain: invalid choice: 'coarse'"),
        ("--format pdf", "argument --format: invalid choice: 'pdf'"),
        ("--other-view 3:1,2", "argument --other-view: '3:1,2' is not a server with its voters; write 3=1,2,3"),
        ("--node 3", "unrecognized arguments: --node 3"),
        ("run --nodes 3", "unrecognized arguments: --nodes"),
        ("replay", "the following arguments are required: FILE"),
        ("quorums", "the following arguments are required: ZOO_CFG"),
        ("list everything", "invalid choice: 'everything'"),
    ],
)
def test_2_for_an_option_that_is_wrong_and_the_message_names_it(words: str, said: str) -> None:
    ended = cli(*words.split())

    assert (ended.code, ended.out) == (2, "")
    (line,) = ended.err.splitlines()  # no usage text of twenty lines before the error
    assert line.startswith("error: ")
    assert said in line
    assert line.endswith("--help")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--late 2 --established", "--late and --established exclude one another"),
        ("--nodes 3 --observers 3", "--observers 3 leaves no voter among 3 servers"),
        ("--nodes 3 --other-view 4=1,4", "--other-view names server 4, and there are the servers 1 to 3"),
        ("--nodes 3 --other-view 3=1,2", "its own file must name it"),
        ("--other-view 3=1,3 --other-view 3=2,3", "--other-view gives one server two files"),
    ],
)
def test_2_for_options_that_do_not_go_together_and_the_message_says_why(words: str, said: str) -> None:
    ended = cli(*words.split())

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: ")
    assert said in ended.err


@pytest.mark.parametrize(
    ("typed", "meant"), [("runn", "run"), ("Replay", "replay"), ("qorums", "quorums"), ("tabels", "tables")]
)
def test_2_for_an_unknown_command_and_the_nearest_one_is_named(typed: str, meant: str) -> None:
    assert cli(typed, "x") == Ended(2, "", f"error: unknown command {typed!r}; did you mean {meant}?\n")


def test_2_for_a_command_like_no_other_and_all_are_named() -> None:
    ended = cli("xyzzy")

    assert ended.code == 2
    assert ended.err.endswith(f"write one of {', '.join(COMMANDS)}\n")


@pytest.mark.parametrize("file", ["missing.itf.json", ".", "raw.itf.json", "nul\0.itf.json"])
def test_150_for_a_trace_that_cannot_be_read(tmp_path: Path, file: str) -> None:
    (tmp_path / "raw.itf.json").write_bytes(b"\xff\xfe\x00")
    ended = cli("replay", tmp_path / file)

    assert (ended.code, ended.out) == (150, "")
    assert ended.err.startswith("error: ")
    assert ": it cannot be read (" in ended.err


def test_2_for_a_folder_of_traces_that_cannot_be_before_anything_is_run(scenario: Write) -> None:
    path = scenario(PASSES)
    ended = cli("run", path, "--traces", path)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: --traces {path}: no folder can be there (")


@pytest.mark.parametrize("words", ["--help", "run --help", "replay -h", "quorums -h", "tables -h", "list -h"])
def test_0_for_help(words: str) -> None:
    ended = cli(*words.split())

    assert ended.code == 0
    assert ended.out.startswith("usage: python -m checker")


# -- 150: scenarios and traces -------------------------------------------------------------------------------


def test_150_for_a_key_that_does_not_exist_and_the_nearest_is_named(scenario: Write) -> None:
    ended = cli("run", scenario(SERVERS + "fualts: {}\n"))

    assert ended == Ended(150, "", "error: s.yaml:3: fualts: unknown key; did you mean faults?\n")


@pytest.mark.parametrize("text", ["", "servers: [1, 2", "\t: -", "- a\n- b\n", "just words", "%YAML 9.9\n---\n: :"])
def test_150_for_what_is_no_scenario_at_all(scenario: Write, text: str) -> None:
    ended = cli("run", scenario(text))

    assert (ended.code, ended.out) == (150, "")
    assert ended.err.startswith("error: s.yaml")


@pytest.mark.parametrize("file", ["missing.yaml", ".", "raw.yaml"])
def test_150_for_a_scenario_that_cannot_be_read(tmp_path: Path, file: str) -> None:
    (tmp_path / "raw.yaml").write_bytes(b"servers: \xff\xfe")
    ended = cli("run", tmp_path / file)

    assert (ended.code, ended.out) == (150, "")
    assert ended.err.startswith("error: ")


def test_150_before_anything_is_run_if_one_scenario_of_several_is_wrong(scenario: Write) -> None:
    ended = cli("run", scenario(PASSES, "good.yaml"), scenario("servers: 3\n", "bad.yaml"))

    assert (ended.code, ended.out) == (150, "")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return saved_trace(tmp_path_factory.mktemp("traces"))


def test_the_trace_that_the_next_tests_spoil_replays(trace: dict[str, Any], tmp_path: Path) -> None:
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


# -- 151: zoo.cfg --------------------------------------------------------------------------------------------


def test_151_for_a_bad_zoo_cfg_of_a_scenario_with_file_and_line(scenario: Write) -> None:
    ended = cli("run", scenario("file: broken.cfg\nservers: [1]\n"))

    assert (ended.code, ended.out) == (151, "")
    assert "broken.cfg:2: " in ended.err


def test_151_for_a_bad_zoo_cfg_among_good_ones_with_file_and_line(scenario: Write) -> None:
    folder = scenario(PASSES).parent
    ended = cli("quorums", folder / "zoo-3.cfg", folder / "broken.cfg")

    assert (ended.code, ended.out) == (151, "")
    assert f"{folder / 'broken.cfg'}:2: " in ended.err


def test_151_for_a_zoo_cfg_that_cannot_be_read(tmp_path: Path) -> None:
    ended = cli("quorums", tmp_path / "missing.cfg", tmp_path)

    assert (ended.code, ended.out) == (151, "")
    assert len(ended.err.splitlines()) == 2, "each file that cannot be read is named"
