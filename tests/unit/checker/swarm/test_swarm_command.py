"""The command `swarm`: verdicts and exit codes, reports, one outcome for any number of processes, and bad options."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from xml.etree import ElementTree as Tree

import pytest

from checker.scenario import bundled
from checker.traces import read_trace
from tests.support.command_line import cli, python_m_checker

SCENARIOS = {path.stem: path for path in bundled()}
DEFECT = SCENARIOS["zookeeper-4712"]
SOUND = SCENARIOS["zab-syncs"]
ONE = ("--workers", 1, "--format", "none")
NO_TIME = ("--shorten", "0.000001")


def without_times(report):
    """Return a report without the figures that depend on the machine."""
    timed = {"workers", "seconds", "steps_per_second", "python_seconds"}
    report["swarm"] = {key: value for key, value in report["swarm"].items() if key not in timed}
    for sample in report["coverage"]:
        del sample["seconds"]
    return report


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def found(folder):
    words = ("--junit", folder / "j.xml", "--sarif", folder / "s.sarif", "--plot", folder / "p.svg")
    words += ("--traces", folder / "traces", "--json", "--verdict")
    return cli("swarm", DEFECT, "--walks", 500, "--workers", 1, *words)


@pytest.fixture(scope="module")
def hurried():
    return cli("swarm", DEFECT, "--walks", 500, "--workers", 1, *NO_TIME)


def test_a_violation_has_the_verdict_and_the_exit_code_of_a_run(found):
    assert found.code == found.data["exit_code"] == 12
    assert found.data["verdict"] == "violated"
    assert found.data["sentence"].startswith("violated: HistoryConsistency at depth 11: ")


def test_the_expectation_of_a_scenario_gives_the_exit_code(hurried):
    assert hurried.code == 0


def test_a_shortest_run_says_so_and_its_trace_can_be_replayed(found):
    (prop,) = [each for each in found.data["properties"] if each["found"]]
    assert prop["found"]["shown_to_be_shortest"] and prop["found"]["depth"] <= prop["seen"]["step"]
    trace = read_trace(json.dumps(found.data["traces"][0]), "swarm")
    assert trace.depth == prop["found"]["depth"] and "shows that it is shortest" in trace.bounds[-1]


def test_a_run_that_no_search_could_confirm_says_that_it_is_not_shown_to_be_shortest(hurried):
    assert "not shown to be shortest" in " ".join(hurried.lines)


def test_the_outcome_is_the_same_for_any_number_of_processes():
    """Here all parts are walked, by one process and by three; in the next test, by one and by two."""
    words = ("--walks", 300, "--keep-going", "--json", *NO_TIME)
    one, three = (without_times(cli("swarm", DEFECT, *words, "--workers", workers).data) for workers in (1, 3))
    assert one["swarm"]["walks"] == 300
    assert one == three


def test_a_swarm_that_stops_at_a_finding_has_one_outcome_for_any_number_of_processes():
    defect = SCENARIOS["zookeeper-1549"]
    one, two = (without_times(cli("swarm", defect, "--json", "--workers", n, "--seconds", 100).data) for n in (1, 2))
    assert one["swarm"]["end"] == "found" and one["swarm"]["walks"] > 1000 and one == two


def test_nothing_is_claimed_without_a_violation():
    ended = cli("swarm", SOUND, "--walks", 100, *ONE)
    assert ended.code == 20
    assert ended.out.startswith("incomplete: no violation in what was executed: 100 walks, ")
    assert not re.search(r"\bexhausted\b|\bholds\b|\bpassed\b(?!\))", ended.out.replace("expected: passed", ""))


def test_the_report_says_what_was_executed():
    lines = cli("swarm", SOUND, "--walks", 100, "--depth", 50, *ONE).lines
    text = "\n".join(lines)
    for part in ("limits depth 50, 100 walks", "walks 100", "HyperLogLog, standard error 0.81%", "coverage over time"):
        assert part in text
    assert any(re.fullmatch(r"seed 1; --walk K with this seed .*", line) for line in lines)
    assert any(re.match(r"\w+ always no violation seen evaluated [\d,]+ times, its premise ", line) for line in lines)


def test_properties_of_liveness_are_said_to_be_not_judged():
    name = next(stem for stem, path in SCENARIOS.items() if path.parent.name == "liveness")
    ended = cli("swarm", SCENARIOS[name], "--walks", 20, *ONE)
    assert any(re.match(r"\w+ (recoverable|eventually) not judged ", line) for line in ended.lines)


def test_one_walk_is_repeated_with_its_number_and_seed(found):
    (prop,) = [each for each in found.data["properties"] if each["found"]]
    again = cli("swarm", DEFECT, "--walk", prop["seen"]["walk"])
    assert again.code == 12
    assert f"violated: HistoryConsistency at depth {prop['seen']['step']}" in again.out
    assert again.lines[-1].endswith("a finding of HistoryConsistency at its end")


@pytest.mark.parametrize("option", ["--json", "--traces DIR", "--junit FILE", "--plot FILE.svg", "--memory 1G"])
def test_an_option_of_a_swarm_is_refused_for_one_walk(option):
    ended = cli("swarm", DEFECT, "--walk", 3, *option.split())
    assert ended.code == 2
    assert ended.err == f"error: --walk repeats and shows one walk; leave {option.split()[0]} out\n"


def test_another_seed_gives_other_walks():
    one, other = (cli("swarm", SOUND, "--walks", 64, "--json", "--workers", 1, "--seed", seed).data for seed in (1, 2))
    assert one["swarm"]["walks_by_depth"] != other["swarm"]["walks_by_depth"]


def test_reports_are_written(found, folder):
    assert found.code == 12
    (suite,) = Tree.parse(folder / "j.xml").getroot()
    assert suite.find("testcase").find("failure").get("message").startswith("violated: HistoryConsistency")
    (result,) = json.loads((folder / "s.sarif").read_text())["runs"][0]["results"]
    assert result["ruleId"] == "HistoryConsistency"
    plot = (folder / "p.svg").read_text()
    assert "distinct states (estimate)" in plot and "<svg" in plot
    assert len(list((folder / "traces").glob("*.itf.json"))) == 1


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nowhere.yaml",), 150, "nowhere.yaml"),
        ((DEFECT, "--depth", 0), 2, "'0' is not a whole number from 1 to"),
        ((DEFECT, "--walks", "many"), 2, "'many' is not a whole number"),
        ((DEFECT, "--seconds", "soon"), 2, "'soon' is not a time"),
        ((DEFECT, "--workers", "ray:nowhere"), 2, "is not the address of a Ray cluster"),
        ((DEFECT, "--seed", -1), 2, "'-1' is not a whole number from 0 to"),
        ((DEFECT, "--plot", "plot.png"), 2, "name a file that ends in .svg"),
        ((DEFECT, "--plot", "nowhere/plot.svg"), 2, "cannot be written"),
        ((DEFECT, "--variant", "ZOOKEEPER-1"), 2, "ZOOKEEPER-1"),
        ((), 2, "FILE"),
    ],
)
def test_a_bad_option_is_one_error(words, code, said):
    ended = python_m_checker("swarm", *words)
    assert ended.code == code and said in ended.err
    assert ended.out == "" and len(ended.err.splitlines()) == 1 and ended.err.startswith("error: ")


OFTEN = """
if __name__ == "__main__":
    from runpy import run_module
    from checker.report import text as report_text

    report_text.EVERY = 0.0
    run_module("checker", run_name="__main__", alter_sys=True)
"""
"""The program with a line of progress as soon as there is one."""


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_ends_a_swarm_with_the_figures_so_far(workers, tmp_path):
    log = tmp_path / "progress"
    words = [SCENARIOS["swarm-five-servers-oracle"], "--seconds", "100", "--depth", "50", "--workers", str(workers)]
    command = [sys.executable, "-c", OFTEN, "swarm", *map(str, words)]
    with log.open("w") as progress:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=progress, text=True, start_new_session=True)
        while not re.search(r"[1-9][\d,]* steps", log.read_text()):
            assert process.poll() is None
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 20
    assert out.startswith("incomplete: no violation in what was executed: ") and "interrupted" in out
    assert not re.search("Traceback", out + log.read_text())


COUNTER = """
from checker.engine import Actor, Column, Finding, Model, Move, Outcome, Property, Read, Rule, Send

def step(values, operation):
    return Outcome((values[0] + operation,))

def moves(count):
    return [Move("Add", (n,), (Send("count", n),)) for n in (-1, 1)] if count < 9 else []

def check(count):
    return Finding("the count is 9", (("count", count),)) if count == 9 else None

model = Model(
    "counter", (Column("count", 0),), (Actor("count", ("count",), step),), (Rule("add", (Read("count"),), moves),),
    (Property("BelowNine", (Read("count"),), check),),
)
"""


def test_a_model_in_a_python_file_is_walked_in_every_process(tmp_path):
    file = tmp_path / "counter.py"
    file.write_text(COUNTER, encoding="utf-8")
    ended = cli("swarm", f"{file}:model", "--walks", 200, "--workers", 2, "--verdict")
    assert ended.code == 12 and "BelowNine at depth 9" in ended.out
