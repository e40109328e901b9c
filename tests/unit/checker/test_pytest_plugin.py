"""The plugin for pytest: collection of tests, their failures, and the isolation of processes.

The plugin is loaded by its module instead of its entry point, so both ways of installing behave alike. Runs in this
process unload the modules that they import. Numba does not survive that, so it is imported before.
"""

from xml.etree import ElementTree as Tree

import pytest

from tests.support.command_line import zoo_cfg
from tests.support.gate import LARGE, NEVER, SERVERS, load_kernels, on_own_time

pytest_plugins = ["pytester"]

PLUGIN = ("-p", "no:quorate", "-p", "checker.pytest_plugin", "-p", "no:cacheprovider")
SCENARIOS = {
    "settles": f"name: all settle\n{SERVERS}sometimes: [AllSettled]\nexpect: passed\n",
    "violated": f"name: 3 never leads\n{SERVERS}{NEVER}",
    "mistake": f"name: a mistake\n{SERVERS}fualts: {{crashes: 1}}\n",
}


@pytest.fixture(scope="module", autouse=True)
def loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The checker and its kernels are loaded, by a run that reports a violation."""
    load_kernels(tmp_path_factory.mktemp("kernels"))


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with scenarios in a separate folder, and other YAML files outside of it."""
    folder = pytester.mkdir("zk")
    for servers in (3, 5):
        (folder / f"zoo-{servers}.cfg").write_text(zoo_cfg(*range(1, servers + 1)))
    for name, text in SCENARIOS.items():
        (folder / f"{name}.yaml").write_text(text)
    (pytester.path / "other.yaml").write_text("- not a scenario\n")
    return pytester


def run(project: pytest.Pytester, *words: str) -> pytest.RunResult:
    return project.runpytest_inprocess(*PLUGIN, *words)


def passed_failed_skipped(result: pytest.RunResult) -> tuple[int, int, int]:
    outcomes = result.parseoutcomes()
    assert "errors" not in outcomes and "error" not in outcomes
    return outcomes.get("passed", 0), outcomes.get("failed", 0), outcomes.get("skipped", 0)


def test_no_yaml_is_a_test_that_nobody_names(project: pytest.Pytester) -> None:
    result = run(project)

    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_file_on_the_command_line_is_a_test_named_like_the_scenario(project: pytest.Pytester) -> None:
    named = run(project, "zk/settles.yaml", "--collect-only", "-q")
    result = run(project, "zk/settles.yaml")
    by_id = run(project, "zk/settles.yaml::all settle")

    assert "zk/settles.yaml::all settle" in named.outlines
    assert passed_failed_skipped(result) == passed_failed_skipped(by_id) == (1, 0, 0)


@pytest.mark.parametrize("glob", ["zk/*.yaml", "**/zk/*.yaml", "zk/settles.yaml zk/violated.yaml zk/mistake.yaml"])
def test_files_that_match_a_glob_of_the_ini_are_tests_beside_those_in_python(
    project: pytest.Pytester, glob: str
) -> None:
    project.makeini(f"[pytest]\nquorate_scenarios = {glob}\n")
    project.makepyfile(test_python="def test_it(): pass\n")
    result = run(project)

    assert passed_failed_skipped(result) == (2, 2, 0)


def test_a_failure_shows_the_verdict_its_line_the_trace_and_how_to_see_it_again(project: pytest.Pytester) -> None:
    result = run(project, "zk/violated.yaml")
    line = 1 + next(n for n, each in enumerate(SCENARIOS["violated"].splitlines()) if "NeverLeads" in each)

    assert passed_failed_skipped(result) == (0, 1, 0)
    result.stdout.fnmatch_lines(
        [
            "violated: NeverLeads(3) at depth 1: it leads (followed by = *",
            f"zk/violated.yaml:{line}: 3 never leads",
            "run it again: quorate run zk/violated.yaml",
            "*step | what happens *| server.1 *| server.2 *| server.3*",
            "*elects server.3*",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SCENARIOS["mistake"], "error: s.yaml:5: fualts: unknown key; did you mean faults?"),
        ("servers: [1, 2", "error: s.yaml:1: invalid YAML: *"),
        (f"{SERVERS}".replace("zoo-3", "zoo-9"), "error: s.yaml:1: file: no such file: 'zoo-9.cfg'; *"),
    ],
)
def test_a_scenario_with_a_mistake_fails_by_itself_with_one_line(
    project: pytest.Pytester, text: str, said: str
) -> None:
    (project.path / "zk" / "s.yaml").write_text(text)
    result = run(project, "zk/s.yaml", "zk/settles.yaml")

    assert passed_failed_skipped(result) == (1, 1, 0)
    result.stdout.fnmatch_lines([said])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_name_that_no_terminal_can_show_is_no_reason_to_break_down(project: pytest.Pytester) -> None:
    name = 'name: "a::b \\uD800 \\a"'
    (project.path / "zk" / "violated.yaml").write_text(SCENARIOS["violated"].replace("name: 3 never leads", name))
    result = project.runpytest_inprocess(*PLUGIN, "zk/violated.yaml", "-v", "--junitxml", "j.xml")

    assert passed_failed_skipped(result) == (0, 1, 0)
    shown = r"b \ud800 \u0007"
    result.stdout.fnmatch_lines([f"zk/violated.yaml::a:{shown} FAILED*", f"zk/violated.yaml:*: a::{shown}"])


def test_a_verdict_that_is_expected_passes_and_another_one_fails(project: pytest.Pytester) -> None:
    folder = project.path / "zk"
    (folder / "violated.yaml").write_text(SCENARIOS["violated"] + "expect: violated\n")
    (folder / "settles.yaml").write_text(SCENARIOS["settles"].replace("expect: passed", "expect: violated"))
    result = run(project, "zk/violated.yaml", "zk/settles.yaml")

    assert passed_failed_skipped(result) == (1, 1, 0)
    result.stdout.fnmatch_lines(["passed: no violation, space exhausted: * states (expected: violated)"])


def test_what_the_budget_ends_is_skipped_as_undecided_and_small_ones_are_not(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_own_time(monkeypatch)
    (project.path / "zk" / "large.yaml").write_text(f"name: large\n{LARGE}expect: violated\n")
    result = run(project, "zk/large.yaml", "zk/settles.yaml", "--quorate-budget", "2s", "-rs")

    assert passed_failed_skipped(result) == (1, 0, 1)
    result.stdout.fnmatch_lines(["SKIPPED*zk/large.yaml: undecided: no violation within the budget: * states, *"])


def test_the_ini_says_how_scenarios_are_explored(project: pytest.Pytester) -> None:
    project.makeini("[pytest]\nquorate_options = --engine plain --depth 0 --workers 1\n")
    result = run(project, "zk/violated.yaml", "--junitxml", "j.xml")
    (case,) = Tree.parse(project.path / "j.xml").iter("testcase")
    figures = {each.attrib["name"]: each.attrib["value"] for each in case.iter("property")}

    assert passed_failed_skipped(result) == (0, 1, 0)
    assert (figures["verdict"], figures["states"], figures["depth"]) == ("vacuous", "1", "0")
    result.stdout.fnmatch_lines(["run it again: quorate run zk/violated.yaml --engine plain --depth 0 --workers 1"])


@pytest.mark.parametrize(
    ("ini", "words", "said"),
    [
        ("", ("--quorate-budget", "soon"), "ERROR: --quorate-budget: 'soon' is not a time; write 60s, 5m or 1h"),
        ("quorate_options = --depht 3", (), "ERROR: quorate_options: unrecognized arguments: --depht 3"),
        ("quorate_scenarios = /zk/*.yaml", (), "ERROR: quorate_scenarios: *; write globs like tests/scenarios/?.yaml"),
    ],
)
def test_an_option_that_is_wrong_is_an_error_of_usage(
    project: pytest.Pytester, ini: str, words: tuple[str, ...], said: str
) -> None:
    project.makeini(f"[pytest]\n{ini}\n")
    result = run(project, "zk/settles.yaml", ".", *words)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])


def test_processes_of_xdist_share_the_scenarios_and_nothing_else(project: pytest.Pytester) -> None:
    """Each worker collects all scenarios and runs some; each result is the same as in a single process."""
    project.makeini("[pytest]\nquorate_scenarios = zk/*.yaml\n")
    result = project.runpytest_subprocess(*PLUGIN, "-n", "2", "--quorate-budget", "60s", "--junitxml", "j.xml")
    cases = {case.attrib["name"]: case for case in Tree.parse(project.path / "j.xml").iter("testcase")}

    assert passed_failed_skipped(result) == (1, 2, 0)
    assert cases.keys() == {"all settle", "3 never leads", "a mistake"}
    states = {each.attrib["value"] for case in cases.values() for each in case.iter("property")
              if each.attrib["name"] == "states"}  # fmt: skip
    assert states == {"7"}  # no leader; or 2 or 3 leads, with one follower of two or with both: 1 + 6


def test_the_plugin_costs_a_suite_without_scenarios_no_import_of_the_checker(project: pytest.Pytester) -> None:
    project.makepyfile(test_python="import sys\ndef test_it(): assert 'numba' not in sys.modules\n")
    result = project.runpytest_subprocess(*PLUGIN)

    assert passed_failed_skipped(result) == (1, 0, 0)
