"""The reports of a gate: each is parsed by a reader that is independent of its writer.

JUnit XML is validated against Jenkins's schema, SARIF against the schema of its standard (npm packages that are
installed for the tests contain both), report.json against the shipped schema. Workflow commands are parsed as GitHub's
runner does, which undoes the escapes. One command is run for all reports: a scenario that passes, one that is violated,
one that expects its violation, one with a mistake, one that is vacuous, and one with another verdict than expected.
"""

import copy
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as Tree

import pytest
from jsonschema import Draft202012Validator, ValidationError

from checker.cli import runner
from checker.engine import Exploration, Limits, Model, Stop, plain
from checker.report import text as report_text
from tests.support.command_line import Ended, cli, zoo_cfg
from tests.support.gate import NEVER, SERVERS, at, check_junit, check_sarif, commands

ROOT = Path(__file__).parents[4]
REPORT = ROOT / "checker" / "report" / "report.schema.json"

ODD = "100%: a, b | <b> ::error:: `x`"  # no format may interpret this text as its own syntax
SCENARIOS = {
    "passes": f"name: settles\n{SERVERS}sometimes: [AllSettled]\nexpect: passed\n",
    "violated": f'name: "{ODD}"\n{SERVERS}{NEVER}expect: passed\n',
    "expected": f"name: shows it\n{SERVERS}{NEVER}expect: violated\n",
    "mistake": f"{SERVERS}fualts: {{crashes: 1}}\n",
    "vacuous": f"name: hopes in vain\n{SERVERS}sometimes: [{{Leads: 1}}]\n",
    "misjudged": f"name: misjudged\n{SERVERS}sometimes: [AllSettled]\nexpect: violated\n",
}
EXIT_CODE = 12  # the most severe of 0, 12, 0, 150, 21 and 1


class Gate(NamedTuple):
    """The results of one command."""

    ended: Ended
    folder: Path
    summary: str

    @property
    def junit(self) -> Tree.Element:
        return Tree.parse(self.folder / "out" / "junit.xml").getroot()

    @property
    def sarif(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "out" / "results.sarif").read_text(encoding="utf-8")))

    @property
    def report(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "out" / "report.json").read_text(encoding="utf-8")))


def write_scenarios(folder: Path) -> list[str]:
    """Write the scenarios next to their zoo.cfg; return their paths as arguments of the command line."""
    (folder / "zk").mkdir()
    for servers in (3, 5):
        (folder / "zk" / f"zoo-{servers}.cfg").write_text(zoo_cfg(*range(1, servers + 1)))
    for name, text in SCENARIOS.items():
        (folder / "zk" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return [f"zk/{name}.yaml" for name in SCENARIOS]


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Gate:
    folder = tmp_path_factory.mktemp("gate")
    files, summary = write_scenarios(folder), folder / "summary.md"
    summary.write_text("what an earlier step said\n", encoding="utf-8")
    reports = ("--junit", "out/junit.xml", "--sarif", "out/results.sarif", "--report", "out/report.json")
    with at(folder, GITHUB_STEP_SUMMARY=str(summary)):
        ended = cli("run", *files, *reports, "--github")
    return Gate(ended, folder, summary.read_text(encoding="utf-8"))


def line_of(name: str, text: str) -> int:
    (line,) = [n for n, each in enumerate(SCENARIOS[name].splitlines(), 1) if text in each]
    return line


# -- the command ---------------------------------------------------------------------------------------------


def test_every_scenario_is_accounted_for_and_the_code_is_the_gravest(gate: Gate) -> None:
    assert gate.ended.code == EXIT_CODE
    assert len(gate.junit.findall("testsuite")) == len(gate.report["runs"]) == len(SCENARIOS)
    assert gate.report["exit_code"] == gate.sarif["runs"][0]["invocations"][0]["exitCode"] == EXIT_CODE
    assert gate.ended.out.count("fualts: unknown key") == 2  # its line, and an annotation
    assert "6 runs, 2 as expected" in gate.ended.out


def test_the_main_job_has_reports_too_and_no_file_to_point_at(tmp_path: Path) -> None:
    with at(tmp_path):
        words = ("--junit", "j.xml", "--sarif", "s.sarif", "--report", "r.json", "--github")
        ended = cli("--nodes", 2, "--grain", "oracle", "--depth", 0, *words)
    report, sarif = (json.loads((tmp_path / name).read_text()) for name in ("r.json", "s.sarif"))

    assert ended.code == 21  # no server can be elected in no step
    assert [(run["file"], run["line"]) for run in report["runs"]] == [(None, None)]
    assert Tree.parse(tmp_path / "j.xml").find("testsuite/testcase").attrib["classname"] == "quorate"
    (result,) = sarif["runs"][0]["results"]
    assert [list(place) for place in result["locations"]] == [["logicalLocations"]]
    check_sarif(sarif)
    check_junit(tmp_path / "j.xml")
    (annotation,) = commands(ended.out)
    assert (annotation.level, set(annotation.properties)) == ("error", {"title"})


def test_an_interrupt_leaves_reports_that_account_for_every_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interrupt comes before the second of three: two are never explored."""

    class Interrupted(report_text.Progress):
        def __init__(self, name: str) -> None:
            if name == ODD:
                raise KeyboardInterrupt
            super().__init__(name)

    monkeypatch.setattr(report_text, "Progress", Interrupted)
    files = write_scenarios(tmp_path)
    with at(tmp_path):
        ended = cli("run", *files[:3], "--junit", "j.xml", "--sarif", "s.sarif", "--report", "r.json", "--github")
    runs = json.loads((tmp_path / "r.json").read_text())["runs"]

    assert ended.code == 20
    assert "2 of 3 runs, 1 as expected" in ended.out
    assert [(run["verdict"], run["exit_code"]) for run in runs] == [("passed", 0), *[("incomplete", 20)] * 2]
    assert [[each.tag for each in case] for case in Tree.parse(tmp_path / "j.xml").iter("testcase")] == [
        [],
        ["error"],
        ["error"],
    ]
    check_sarif(json.loads((tmp_path / "s.sarif").read_text()))
    assert [each.level for each in commands(ended.out)] == ["error", "error"]


def test_an_interrupt_while_engines_are_compared_ends_the_command_and_what_one_has_found_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(model: Model, limits: Limits, **_: object) -> Exploration:
        return Exploration(model, "plain", limits, levels=[1], stop=Stop.INTERRUPTED)

    monkeypatch.setattr(plain, "explore", interrupted)
    files = write_scenarios(tmp_path)
    with at(tmp_path):
        ended = cli("run", files[1], files[0], "--engine", "both", "--report", "r.json")
    runs = json.loads((tmp_path / "r.json").read_text())["runs"]

    assert ended.code == 12
    assert [(run["verdict"], run["search"] and run["search"]["stop"]) for run in runs] == [
        ("violated", "interrupted"),
        ("incomplete", None),
    ]


def test_an_interrupt_while_a_run_is_made_easier_to_read_loses_nothing_of_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "minimised", interrupted)
    files = write_scenarios(tmp_path)
    with at(tmp_path):
        ended = cli("run", files[0], files[1], "--report", "r.json")
    runs = json.loads((tmp_path / "r.json").read_text())["runs"]

    assert ended.code == 12
    assert [run["verdict"] for run in runs] == ["passed", "violated"]
    assert [len(run["traces"]) for run in runs] == [0, 1]


# -- JUnit ---------------------------------------------------------------------------------------------------


def test_junit_is_what_the_schema_of_jenkins_allows(gate: Gate) -> None:
    check_junit(gate.folder / "out" / "junit.xml")


def test_no_case_of_junit_passes_that_did_not_come_out_as_expected(gate: Gate) -> None:
    said = {}
    for case in gate.junit.iter("testcase"):
        said[Path(case.attrib["classname"]).stem] = [child.tag for child in case]

    assert said == {
        "passes": [],
        "violated": ["failure"],
        "expected": [],
        "mistake": ["error"],
        "vacuous": ["failure"],
        "misjudged": ["failure"],
    }
    assert (gate.junit.attrib["tests"], gate.junit.attrib["failures"], gate.junit.attrib["errors"]) == ("6", "3", "1")


def test_a_failure_of_junit_shows_the_trace_and_its_suite_the_figures(gate: Gate) -> None:
    (suite,) = [each for each in gate.junit if each.attrib["name"] == ODD]
    failure = suite.find("testcase/failure")
    figures = {each.attrib["name"]: each.attrib["value"] for each in suite.iter("property")}

    assert failure is not None and failure.attrib["message"].startswith("violated: NeverLeads(3) at depth 1: it leads")
    assert "server.2 elects server.3" in (failure.text or "") or "server.1 elects server.3" in (failure.text or "")
    (run,) = [each for each in gate.report["runs"] if each["name"] == ODD]
    assert (figures["states"], figures["depth"]) == (str(run["search"]["states"]), str(run["search"]["depth"]))
    assert (figures["file"], figures["verdict"]) == ("zk/violated.yaml", "violated")


def test_junit_replaces_what_xml_cannot_hold(tmp_path: Path) -> None:
    (tmp_path / "zoo-3.cfg").write_text(zoo_cfg(1, 2, 3))
    (tmp_path / "s.yaml").write_text(f'name: "bell \\a half \\uD800 end"\n{SERVERS}', encoding="utf-8")
    with at(tmp_path):
        cli("run", "s.yaml", "--junit", "j.xml", "--sarif", "s.sarif", "--report", "r.json")

    (case,) = Tree.parse(tmp_path / "j.xml").iter("testcase")
    assert case.attrib["name"] == r"bell \u0007 half \ud800 end"
    assert json.loads((tmp_path / "r.json").read_text())["runs"][0]["name"] == "bell \a half \ud800 end"


# -- SARIF ---------------------------------------------------------------------------------------------------


def test_sarif_is_what_its_own_schema_allows(gate: Gate) -> None:
    check_sarif(gate.sarif)
    with pytest.raises(ValidationError):
        check_sarif({**gate.sarif, "version": "2.0.0"})


def test_results_of_sarif_are_what_should_not_be_at_the_lines_of_what_they_are_about(gate: Gate) -> None:
    (run,) = gate.sarif["runs"]
    found = {}
    for result in run["results"]:
        place = result["locations"][0]["physicalLocation"]
        found[result["ruleId"]] = (place["artifactLocation"]["uri"], place["region"]["startLine"], result["level"])
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]

    assert found == {
        "NeverLeads(3)": ("zk/violated.yaml", line_of("violated", "NeverLeads"), "error"),
        "bad-scenario": ("zk/mistake.yaml", line_of("mistake", "fualts"), "error"),
        "vacuous": ("zk/vacuous.yaml", line_of("vacuous", "name:"), "warning"),
        "unexpected-pass": ("zk/misjudged.yaml", line_of("misjudged", "expect:"), "error"),
    }
    assert run["invocations"][0]["executionSuccessful"] is False  # one of them could not be read


def test_the_code_flow_of_a_result_has_the_steps_of_the_trace(gate: Gate) -> None:
    (result,) = [each for each in gate.sarif["runs"][0]["results"] if each["ruleId"] == "NeverLeads(3)"]
    (run,) = [each for each in gate.report["runs"] if each["name"] == ODD]
    ((flow,),) = [each["threadFlows"] for each in result["codeFlows"]]
    captions = [state["#meta"]["caption"] for state in run["traces"][0]["states"]]

    assert [place["location"]["message"]["text"] for place in flow["locations"]] == [
        f"{number}. {caption}" for number, caption in enumerate(captions)
    ]
    assert flow["locations"][-1]["state"]["server.3.state"] == {"text": "LEADING"}


def test_a_fingerprint_outlives_new_lines_and_other_clauses_have_others(gate: Gate, tmp_path: Path) -> None:
    (tmp_path / "zoo-3.cfg").write_text(zoo_cfg(1, 2, 3))
    moved = "# a remark\n" + SCENARIOS["violated"]
    other = SCENARIOS["violated"].replace("NeverLeads: 3", "NeverLeads: 2")
    for name, text in (("moved", moved), ("other", other)):
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    with at(tmp_path):
        cli("run", "moved.yaml", "other.yaml", "--sarif", "s.sarif")
    results = json.loads((tmp_path / "s.sarif").read_text())["runs"][0]["results"]
    (known,) = [each for each in gate.sarif["runs"][0]["results"] if each["ruleId"] == "NeverLeads(3)"]

    prints = {each["ruleId"]: each["partialFingerprints"]["quorateFinding/v1"] for each in results}
    assert prints["NeverLeads(3)"] == known["partialFingerprints"]["quorateFinding/v1"]
    assert prints.keys() == {"NeverLeads(3)", "NeverLeads(2)"}
    assert len(set(prints.values())) == 2


@pytest.mark.parametrize(("expected", "code", "level"), [("incomplete", 0, "note"), ("passed", 20, "error")])
def test_a_search_that_its_limit_ended_is_an_error_unless_that_is_expected(
    tmp_path: Path, expected: str, code: int, level: str
) -> None:
    (tmp_path / "zoo-3.cfg").write_text(zoo_cfg(1, 2, 3))
    (tmp_path / "s.yaml").write_text(f"{SERVERS}limits: {{states: 1}}\nexpect: {expected}\n", encoding="utf-8")
    with at(tmp_path):
        ended = cli("run", "s.yaml", "--sarif", "s.sarif")
    (run,) = json.loads((tmp_path / "s.sarif").read_text())["runs"]

    assert ended.code == code
    assert [note["level"] for note in run["invocations"][0]["toolExecutionNotifications"]] == [level]
    assert run["results"] == []


def test_a_file_whose_name_is_no_text_has_its_bytes_in_the_address(tmp_path: Path) -> None:
    (tmp_path / "zoo-3.cfg").write_text(zoo_cfg(1, 2, 3))
    name = os.fsdecode(b"caf\xe9.yaml")  # Latin-1
    (tmp_path / name).write_text(SCENARIOS["violated"], encoding="utf-8")
    with at(tmp_path):
        ended = cli("run", name, "--sarif", "s.sarif", "--junit", "j.xml", "--report", "r.json", "--github")
    sarif = json.loads((tmp_path / "s.sarif").read_text())

    assert ended.code == 12
    (location,) = sarif["runs"][0]["results"][0]["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "caf%E9.yaml"


# -- GitHub --------------------------------------------------------------------------------------------------


def test_annotations_are_what_should_not_be_at_its_lines_and_no_name_is_a_command(gate: Gate) -> None:
    found = {command.properties["file"]: command for command in commands(gate.ended.out)}

    assert {(file, command.level, command.properties["line"]) for file, command in found.items()} == {
        ("zk/violated.yaml", "error", str(line_of("violated", "NeverLeads"))),
        ("zk/mistake.yaml", "error", str(line_of("mistake", "fualts"))),
        ("zk/vacuous.yaml", "error", str(line_of("vacuous", "name:"))),
        ("zk/misjudged.yaml", "error", str(line_of("misjudged", "expect:"))),
    }
    assert found["zk/violated.yaml"].message == f"{ODD}: violated: NeverLeads(3) at depth 1: it leads"
    assert found["zk/vacuous.yaml"].properties["title"] == "vacuous: hopes in vain"
    assert found["zk/misjudged.yaml"].properties["title"] == "passed unexpectedly: misjudged"


def test_paths_are_seen_from_the_workspace_wherever_the_command_runs(tmp_path: Path) -> None:
    write_scenarios(tmp_path)
    with at(tmp_path / "zk", GITHUB_WORKSPACE=str(tmp_path)):
        ended = cli("run", "violated.yaml", "--github", "--sarif", "../s.sarif")
    (result,) = json.loads((tmp_path / "s.sarif").read_text())["runs"][0]["results"]

    assert [command.properties["file"] for command in commands(ended.out)] == ["zk/violated.yaml"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "zk/violated.yaml"


# -- report.json ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(REPORT.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return schema


def closed(schema: Any) -> Any:
    """Return the same schema without additional fields; fields of traces belong to the ITF."""
    if isinstance(schema, dict):
        made = {key: each if key == "trace" else closed(each) for key, each in schema.items()}
        return {**made, "additionalProperties": False} if "required" in schema else made
    return [closed(each) for each in schema] if isinstance(schema, list) else schema


def test_the_report_is_what_its_schema_allows_and_the_schema_names_every_field(
    gate: Gate, schema: dict[str, Any]
) -> None:
    Draft202012Validator(schema).validate(gate.report)
    Draft202012Validator(closed(schema)).validate(gate.report)


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Return the paths of all fields of the objects in a report, except those of traces, and names of a model."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield (*path, key)
            if key not in ("traces", "witnesses", "values"):
                yield from places(each, (*path, key))
    elif isinstance(value, list):
        for number, each in enumerate(value[:2]):
            yield from places(each, (*path, number))


def test_a_report_without_a_field_or_with_another_kind_of_value_is_refused(gate: Gate, schema: dict[str, Any]) -> None:
    validator, tried = Draft202012Validator(schema), 0
    small = {**gate.report, "runs": gate.report["runs"][:2]}
    for path in places(small):
        for change in (lambda at, key: at.pop(key), lambda at, key: at.update({key: {"un": "known"}})):
            spoilt = copy.deepcopy(small)
            inner = spoilt
            for key in path[:-1]:
                inner = inner[key]
            change(inner, path[-1])
            assert not validator.is_valid(spoilt), f"{path} may be left out, or be anything"
            tried += 1
    assert tried > 200


def test_a_passing_run_has_its_witness_as_a_trace_that_replays(gate: Gate, tmp_path: Path) -> None:
    run = gate.report["runs"][0]
    (witness,) = run["witnesses"]
    (prop,) = [each for each in run["properties"] if each["kind"] == "sometimes"]
    (tmp_path / "w.itf.json").write_text(json.dumps(witness), encoding="utf-8")
    replayed = cli("replay", tmp_path / "w.itf.json", "--format", "none")

    assert (run["verdict"], run["traces"], witness["#meta"]["property"]) == ("passed", [], prop["name"])
    assert len(witness["states"]) - 1 == prop["found"]["depth"]
    assert replayed.code == 0, replayed.err


def test_the_report_names_the_command_and_what_its_runs_have_in_common(tmp_path: Path) -> None:
    files = write_scenarios(tmp_path)
    words = ("run", files[0], "--depth", "3", "--time", "30s", "--memory", "1G", "--workers", "1", "--report", "r.json")
    with at(tmp_path):
        cli(*words)
    report = json.loads((tmp_path / "r.json").read_text())

    assert report["command"] == list(words)
    expected = {"depth": 3, "time": 30.0, "memory": 10**9, "workers": 1, "engine": "tables", "budget": None}
    assert expected.items() <= report["parameters"].items()
    limits = {"depth": 3, "states": None, "memory": 10**9, "seconds": 30.0, "work": None}
    assert report["runs"][0]["limits"] == limits
