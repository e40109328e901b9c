"""The output of the commands: lines for people, JSON for programs, traces that replay, tables of the guide.

Expected values come from the requirements (R2, R3, R10), or from another way to compute them: the other engine, the
other format, the definition of a quorum.
"""

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from checker.cli import tables
from checker.job import Verdict
from checker.properties import ENSEMBLE_PROPERTIES
from checker.properties.recipes import RECIPE_PROPERTIES
from checker.properties.service import SERVICE_PROPERTIES
from checker.scenario import bundled
from checker.traces.formats import FORMATS
from tests.support.command_line import Ended, Write, cli, scenarios_in

R10 = next(path for path in bundled() if path.stem == "r10-wrong-order")
PASSES = "file: zoo-3.cfg\nservers: [1, 2, 3]\ngrain: oracle\nsometimes: [AllSettled]\n"
# The highest of three equal servers wins if it takes part (R7).
VIOLATED = "file: zoo-3.cfg\nservers: [1, 2, 3]\nalways: [{NeverLeads: 3}]\nsometimes: [{Leads: 3}]\n"
VACUOUS = "file: zoo-3.cfg\nservers: [1, 2, 3]\ngrain: oracle\nsometimes: [{Leads: 1}]\n"
# With two servers one loss stops service (R2).
DEADLOCK = "file: zoo-2.cfg\nservers: [1, 2]\ngrain: oracle\nfaults: {crashes: 1}\nfinal: [Serves]\n"
INCOMPLETE = PASSES + "limits: {states: 1}\n"
ESCAPE = "\x1b["


@pytest.fixture
def scenario(tmp_path: Path) -> Write:
    return scenarios_in(tmp_path)


@cache
def report_of_a_set(nodes: int) -> Ended:
    return cli("--nodes", nodes)


@cache
def json_of(*words: object) -> Any:
    return cli(*words, "--json", "--memory", "4G", "--workers", 1).data


# -- text ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", [2, 3])
def test_every_run_of_a_set_is_a_line_with_its_grain_states_depth_and_verdict(nodes: int) -> None:
    text, runs = report_of_a_set(nodes), json_of("--nodes", nodes)["runs"]

    assert text.code == 0
    assert text.lines[-1] == f"{len(runs)} runs, all as expected"
    assert text.lines[: len(runs)] == [
        f"{run['job']['name']} {run['job']['grain']} {run['search']['states']:,} {run['search']['depth']} "
        f"passed (as expected)"
        for run in runs
    ]


def test_a_set_of_runs_says_of_each_invariant_in_how_many_states_it_was_put_to_the_test() -> None:
    text, data = report_of_a_set(2), json_of("--nodes", 2)
    examined = [prop["premise"] for run in data["runs"] for prop in run["properties"] if prop["name"] == "TotalOrder"]

    (line,) = [line for line in text.lines if line.startswith("TotalOrder ")]
    assert line.split()[-1] == f"{sum(examined):,}"
    assert sum(examined) > 0


def test_the_set_of_runs_looks_at_the_whole_server_and_at_messages_a_broken_link_and_every_fault() -> None:
    grains = {run["job"]["name"]: run["job"]["grain"] for run in json_of("--nodes", 3)["runs"]}

    assert grains == {
        "cold start": "fine",
        "established": "oracle",
        "crash, observer, another view": "oracle",
        "a broken link": "fine",
        "faults of every kind": "oracle",
    }


def test_without_a_number_there_are_three_servers() -> None:
    assert cli().lines == report_of_a_set(3).lines


def test_levels_are_the_new_states_at_each_depth_from_the_first_state_on(scenario: Write) -> None:
    ended = cli("run", scenario(PASSES), "--levels")
    head = ended.lines.index("new states at each depth")
    levels = [tuple(map(int, line.split())) for line in ended.lines[head + 1 :]]

    search = cli("run", scenario(PASSES), "--json", "--engine", "plain").data["runs"][0]["search"]
    assert levels == list(enumerate(search["levels"]))
    assert levels[0] == (0, 1)
    assert "new states at each depth" not in cli("run", scenario(PASSES)).lines


def test_list_names_every_shipped_scenario_and_every_property() -> None:
    rows = [re.split(r"\s{2,}", line.strip()) for line in cli("list").out.splitlines()]

    properties = ["properties of ensembles", *ENSEMBLE_PROPERTIES, "properties of a service", *SERVICE_PROPERTIES]
    properties += ["properties of recipes", *RECIPE_PROPERTIES]
    assert [row[0] for row in rows] == ["scenarios", *(path.stem for path in bundled()), *properties]
    verdicts = {row[2] for row in rows if len(row) == 4}
    assert {"passed", "violated", "deadlock"} <= verdicts <= {each.value for each in Verdict}, "what each comes to"
    assert len([row for row in rows if len(row) == 4]) == len(bundled())


# -- JSON ----------------------------------------------------------------------------------------------------

REPORT = {
    "schema", "job", "verdict", "as_expected", "exit_code", "sentence", "reasons", "limits", "properties", "actions",
    "search", "traces",
}  # fmt: skip
JOB = {"name", "grain", "bounds", "expected", "violations", "like"}
SEARCH = {
    "engine", "stop", "exhausted", "states", "transitions", "depth", "levels", "ends", "seconds", "states_per_second",
    "python_steps", "python_calls", "python_seconds", "values",
    "peak_bytes", "bytes_per_state", "spilled_bytes", "collision_probability", "seed",
    "growth",
    "reduction",
    "second_engine",
    "notes",
    "workers",
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "verdict", "code"),
    [
        (PASSES, "passed", 0),
        (VIOLATED, "violated", 12),
        (DEADLOCK, "deadlock", 11),
        (VACUOUS, "vacuous", 21),
        (INCOMPLETE, "incomplete", 20),
    ],
)
def test_json_has_the_fields_of_its_schema_and_agrees_with_the_exit_code_and_the_text(
    scenario: Write, text: str, verdict: str, code: int
) -> None:
    ended, report = cli("run", scenario(text), "--json"), cli("run", scenario(text))
    (run,) = ended.data["runs"]

    assert ended.err == ""
    assert (ended.data["schema"], ended.data["exit_code"], ended.code) == (1, code, code)
    assert (set(run), set(run["job"]), set(run["search"])) == (REPORT, JOB, SEARCH)
    assert (run["verdict"], run["exit_code"], run["as_expected"]) == (verdict, code, None)
    assert run["sentence"] == report.out.splitlines()[0]
    search = run["search"]
    assert search["states"] == sum(search["levels"])
    assert search["depth"] == len(search["levels"]) - 1
    assert search["exhausted"] == (verdict in ("passed", "vacuous"))


def test_json_of_several_runs_has_one_object_each_and_the_code_of_the_process(scenario: Write) -> None:
    good, bad = scenario(PASSES + "expect: passed\n", "1.yaml"), scenario(VIOLATED + "expect: passed\n", "2.yaml")
    ended = cli("run", good, bad, "--json")

    assert [(run["exit_code"], run["as_expected"]) for run in ended.data["runs"]] == [(0, True), (12, False)]
    assert ended.data["exit_code"] == ended.code == 12


def test_json_holds_the_trace_of_a_violation_and_none_of_a_witness(scenario: Write) -> None:
    (violated,) = cli("run", scenario(VIOLATED), "--json").data["runs"]
    (passed,) = cli("run", scenario(PASSES), "--json").data["runs"]

    assert [trace["#meta"]["property"] for trace in violated["traces"]] == ["NeverLeads(3)"]
    assert passed["traces"] == []
    assert [prop["outcome"].startswith("witnessed at depth ") for prop in passed["properties"]][-1]


# -- engines and workers -------------------------------------------------------------------------------------

MEASURED = {"seconds", "states_per_second", "python_seconds", "peak_bytes", "bytes_per_state"}


def without(names_left_out: set[str], value: Any) -> Any:
    """Return a JSON value without these keys at any depth."""
    if isinstance(value, dict):
        return {key: without(names_left_out, each) for key, each in value.items() if key not in names_left_out}
    return [without(names_left_out, each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("words", [("--nodes", 3), ("run", R10)], ids=["three servers", "R10"])
def test_one_worker_and_two_differ_in_time_and_memory_only(words: tuple[object, ...]) -> None:
    two = cli(*words, "--json", "--memory", "4G", "--workers", 2).data

    assert without(MEASURED, json_of(*words)) == without(MEASURED, two)


@pytest.mark.parametrize("text", [PASSES, VIOLATED, DEADLOCK, VACUOUS, INCOMPLETE])
def test_both_engines_agree_and_the_report_names_the_one_that_was_asked_for(scenario: Write, text: str) -> None:
    path = scenario(text)
    plain, by_tables, both = (cli("run", path, "--engine", engine) for engine in ("plain", "tables", "both"))

    assert plain.code == by_tables.code == both.code
    verdicts = {ended.lines[0].partition(" (")[0] for ended in (plain, by_tables, both)}
    assert len(verdicts) == 1, "the same to the depth and the clause; of several such states each may show another"
    assert "search by the plain engine" in plain.lines
    assert "search by the tables engine" in by_tables.lines
    assert "collisions none: states are compared whole" in plain.lines
    (second,) = [line for line in both.lines if line.startswith("second engine")]
    assert second.startswith("second engine the plain engine, ")
    assert second.endswith(": every figure agrees")
    assert not [line for line in (*plain.lines, *by_tables.lines) if line.startswith("second engine")]


def test_a_file_says_that_the_second_engine_agreed(scenario: Write) -> None:
    path = scenario(PASSES)
    ended = [cli("run", path, "--engine", engine, "--json") for engine in ("both", "tables")]
    both, alone = (each.data["runs"][0]["search"] for each in ended)
    assert both["second_engine"].startswith(f"the plain engine, {both['states']:,} states in ")
    assert both["second_engine"].endswith(": every figure agrees")
    assert alone["second_engine"] == ""


# -- traces --------------------------------------------------------------------------------------------------


def test_itf_shows_the_same_trace_as_json_holds(scenario: Write) -> None:
    text = cli("run", scenario(VIOLATED), "--format", "itf").out
    (run,) = cli("run", scenario(VIOLATED), "--json").data["runs"]

    assert json.loads(text[text.index("\n{") :]) == run["traces"][0]


@pytest.mark.parametrize("text", [VIOLATED, DEADLOCK, PASSES], ids=["violation", "deadlock", "witness"])
def test_traces_are_written_in_every_format_and_replay_to_the_same_finding(scenario: Write, text: str) -> None:
    folder = scenario(text).parent / "new" / "traces"
    (run,) = cli("run", scenario(text), "--traces", folder, "--json").data["runs"]

    found = {prop["name"]: prop["found"] for prop in run["properties"] if prop["found"]}
    stems = {path.name.removesuffix(".itf.json") for path in folder.glob("*.itf.json")}
    assert {path.name for path in folder.iterdir()} == {
        each.file_name(stem) for stem in stems for each in FORMATS.values()
    }
    replayed = [cli("replay", folder / f"{stem}.itf.json") for stem in sorted(stems)]
    assert [each.code for each in replayed] == [0] * len(found)
    assert {each.lines[-1] for each in replayed} == {
        f"replayed: {one['depth']} steps, and {name} again: {one['clause']}" for name, one in found.items()
    }


def test_a_replay_shows_the_very_text_that_was_written(scenario: Write) -> None:
    folder = scenario(VIOLATED).parent / "traces"
    cli("run", scenario(VIOLATED), "--traces", folder)

    files = list(folder.glob("*.itf.json"))
    assert len(files) == 2, "a violation and a witness"
    for file in files:
        for form in FORMATS.values():
            written = file.with_name(form.file_name(file.name.removesuffix(".itf.json"))).read_text()
            assert cli("replay", file, "--format", form.name).out.startswith(written)
        assert len(cli("replay", file, "--format", "none").lines) == 1


def test_two_runs_of_one_name_do_not_overwrite_each_others_traces(scenario: Write) -> None:
    folder = scenario(VIOLATED).parent / "traces"
    first = scenario(f"name: same\n{VIOLATED}", "1.yaml")
    second = scenario(f"name: same\n{VIOLATED}grain: oracle\n", "2.yaml")
    cli("run", first, second, "--traces", folder, "--format", "none")
    written = [json.loads(file.read_text())["#meta"] for file in folder.glob("same*.itf.json")]

    found = sorted((meta["property"], meta["grain"]) for meta in written)
    assert found == [(name, grain) for name in ("Leads(3)", "NeverLeads(3)") for grain in ("fine", "oracle")]


def test_nor_do_two_whose_names_are_one_for_a_test(scenario: Write) -> None:
    """The names of other files keep a dot and capitals; the name of a Python module does not."""
    folder = scenario(VIOLATED).parent / "traces"
    names = ["v3.9 one", "v3-9 one", "V3 9.one"]
    paths = [scenario(f"name: {name}\n{VIOLATED}", f"{place}.yaml") for place, name in enumerate(names)]
    cli("run", *paths, "--traces", folder, "--format", "none")
    assert len(list(folder.glob("*.itf.json"))) == 6, "each run has a violation and a witness"
    assert len(list(folder.iterdir())) == 6 * len(FORMATS)


# -- R10, message by message ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def refined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The saved trace of the wrong order, refined to messages."""
    folder = tmp_path_factory.mktemp("refined")
    ended = cli("run", R10, "--refine", "--traces", folder, "--format", "none")
    assert (ended.code, ended.err) == (0, "")
    (file,) = folder.glob("*OneLeader.itf.json")
    return file


def plain_value(value: Any) -> Any:
    """Convert a value of the Informal Trace Format to a Python value."""
    if isinstance(value, dict) and "#bigint" in value:
        return int(value["#bigint"])
    if isinstance(value, dict):
        return {key: plain_value(each) for key, each in value.items()}
    return value


def servers_at_the_end(file: Path) -> dict[int, dict[str, Any]]:
    last = json.loads(file.read_text())["states"][-1]
    return {int(name[7:]): plain_value(last[name]) for name in last if name.startswith("server.")}


def test_by_the_oracle_the_wrong_order_elects_in_single_steps(tmp_path: Path) -> None:
    cli("run", R10, "--traces", tmp_path, "--format", "none")
    (file,) = tmp_path.glob("*OneLeader.itf.json")
    actions = [move["action"] for move in json.loads(file.read_text())["#meta"]["moves"]]

    assert actions.count("elect") == 2, "one for each leader"
    assert "deliver" not in actions


def test_refined_it_is_told_message_by_message(refined: Path) -> None:
    meta = json.loads(refined.read_text())["#meta"]
    actions = [move["action"] for move in meta["moves"]]

    assert meta["grain"] == "fine, along a run by the oracle"
    assert "elect" not in actions
    assert actions.count("decide") == 5, "each server decides for itself"
    assert actions.count("deliver") >= 5, "and nobody can without having heard another"


def test_refined_it_ends_with_leaders_3_and_5_and_the_followers_of_the_requirement(refined: Path) -> None:
    """R10: 1 and 3, still on the three-server file, elect 3; 2 joins 4 and 5 behind 5."""
    servers = servers_at_the_end(refined)

    assert {sid for sid, each in servers.items() if each["state"] == "LEADING"} == {3, 5}
    assert {sid: each["vote"]["leader"] for sid, each in servers.items()} == {1: 3, 2: 5, 3: 3, 4: 5, 5: 5}
    assert {sid: each["file"] for sid, each in servers.items()} == {
        1: "zoo-3.cfg", 2: "zoo-5.cfg", 3: "zoo-3.cfg", 4: "zoo-5.cfg", 5: "zoo-5.cfg",
    }  # fmt: skip


def test_refined_each_leader_holds_a_quorum_of_votes_of_its_own_file(refined: Path) -> None:
    """Two of three and three of five: both are correct majorities, so the split is possible."""
    servers = servers_at_the_end(refined)
    for leader, quorum in ((3, 2), (5, 3)):
        assert list(servers[leader]["bucket"].values()).count(leader) >= quorum


def test_the_refined_trace_replays(refined: Path) -> None:
    ended = cli("replay", refined, "--format", "none")

    assert ended.code == 0
    depth = len(json.loads(refined.read_text())["#meta"]["moves"])
    assert ended.lines[0].startswith(f"replayed: {depth} steps, and OneLeader again: two servers lead")


def test_a_run_that_the_bounds_do_not_let_be_told_finely_is_told_by_the_oracle_with_a_note(scenario: Write) -> None:
    """With one round only, the fine grain has no second election for servers that lose their leader."""
    text = f"{R10.read_text()}\nrounds: 1\n"
    for zoo_cfg in R10.parent.glob("*.cfg"):
        scenario(zoo_cfg.read_text(), zoo_cfg.name)
    ended = cli("run", scenario(text), "--refine")

    assert (ended.code, ended.err[:6]) == (0, "note: ")
    assert "is shown with the steps of the oracle, not message by message: " in ended.err
    assert "R10, three to five in the wrong order; grain: oracle" in ended.out


# -- quorums and tables --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def computed_once() -> Iterator[None]:
    """Compute the tables only once: these tests request them in two formats, and every command computes them anew."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("losses", "partitions"):
            patch.setattr(tables, name, cache(getattr(tables, name)))
        yield


@pytest.mark.usefixtures("computed_once")
def test_the_tables_are_those_of_the_guide() -> None:
    """R2: the number of losses that are survived. R3: the side that serves after a cut; of 6 cut 3 to 3, neither."""
    data = cli("tables", "--json").data

    assert {row["servers"]: row["survives"] for row in data["R2"]} == {2: 0, 3: 1, 4: 1, 5: 2, 6: 2}
    sides = {
        (row["servers"], row["cut_off"]): (row["leader_side_serves"], row["cut_off_side_serves"]) for row in data["R3"]
    }
    assert sides == {
        (5, 1): (True, False), (5, 2): (True, False), (5, 3): (False, True),
        (6, 1): (True, False), (6, 2): (True, False), (6, 3): (False, False),
    }  # fmt: skip


# -- colours -------------------------------------------------------------------------------------------------


def everything_shown(terminal: int) -> Iterator[bytes]:
    """Return the output on a terminal, until the other side is closed."""
    with contextlib.suppress(OSError):
        while piece := os.read(terminal, 4096):
            yield piece


def test_a_terminal_gets_colours_and_a_pipe_gets_none(scenario: Write) -> None:
    command = [sys.executable, "-m", "checker", "run", str(scenario(VIOLATED))]
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    environment["TERM"] = "xterm-256color"
    piped = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=60)
    terminal, other_side = pty.openpty()
    with subprocess.Popen(command, stdout=other_side, stderr=other_side, env=environment):
        os.close(other_side)
        shown = b"".join(everything_shown(terminal)).decode()
    os.close(terminal)

    assert ESCAPE not in piped.stdout + piped.stderr
    assert ESCAPE in shown
    assert piped.stdout.splitlines()[0] in shown, "the same words in both"
