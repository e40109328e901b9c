"""The composite action: valid by GitHub's schema of actions, and its scripts, run by bash as the runner does.

The schema is that of check-jsonschema. The scripts contain no expressions: inputs reach them only through the
environment, so no input can break out of its word.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.support.command_line import zoo_cfg
from tests.support.gate import NEVER, SERVERS, commands

ROOT = Path(__file__).parents[3]
ACTION = ROOT / "action.yml"
STUB = '#!/bin/sh\nprintf "%s\\n" "$@" > words\nexit 0\n'
QUORATE = "import sys; from checker.cli.quorate import main; sys.exit(main())"
REAL = f'#!/bin/sh\nexec "{sys.executable}" "$@"\n'


@pytest.fixture(scope="module")
def action() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    return read


@pytest.mark.parametrize(("line", "code"), [("using: composite", 0), ("using: compost", 1)])
def test_it_is_what_the_schema_of_actions_allows(tmp_path: Path, line: str, code: int) -> None:
    (tmp_path / "action.yml").write_text(ACTION.read_text(encoding="utf-8").replace("using: composite", line))
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-actions", "action.yml"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert ended.returncode == code, ended.stdout + ended.stderr


def test_no_script_of_it_has_an_expression_in_its_text(action: dict[str, Any]) -> None:
    scripts = [step["run"] for step in action["runs"]["steps"] if "run" in step]

    assert len(scripts) == 3
    assert [script for script in scripts if "${{" in script] == []


def test_every_input_is_used_and_every_expression_names_one_that_is_there(action: dict[str, Any]) -> None:
    used = set(re.findall(r"inputs\.([\w-]+)", json.dumps(action["runs"])))

    assert used == set(action["inputs"])
    steps = {step["id"]: step for step in action["runs"]["steps"] if "id" in step}
    assert set(re.findall(r"steps\.([\w-]+)\.", json.dumps(action))) <= set(steps)


def test_kernels_are_kept_under_what_they_are_compiled_from(action: dict[str, Any], tmp_path: Path) -> None:
    """A change of the engine changes the digest, even at the same size; the folder and the key contain it."""
    (sources,) = [each for each in action["runs"]["steps"] if each.get("id") == "sources"]
    (cache,) = [each for each in action["runs"]["steps"] if each.get("uses", "").startswith("actions/cache@")]
    shutil.copytree(ROOT / "checker" / "engine", tmp_path / "checker" / "engine")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    digests = []
    for old, new in (("", ""), ("+", "-"), ("", "")):
        kernels = tmp_path / "checker" / "engine" / "kernels" / "search_kernels.py"
        text = kernels.read_text()
        kernels.write_text(text.replace(old, new, 1) if old else text)
        environment = {**os.environ, "GITHUB_ACTION_PATH": str(tmp_path), "GITHUB_OUTPUT": str(tmp_path / "out")}
        subprocess.run(["bash", "-eo", "pipefail", "-c", sources["run"]], env=environment, check=True)
        digests.append(outputs_of(tmp_path / "out")["digest"])

    assert [re.fullmatch("[0-9a-f]{64}", digest) is not None for digest in digests] == [True] * 3
    assert digests[0] != digests[1] == digests[2]
    (run,) = [each for each in action["runs"]["steps"] if each.get("id") == "run"]
    assert run["env"]["NUMBA_CACHE_DIR"] in cache["with"]["path"].splitlines()
    assert all("steps.sources.outputs.digest" in each for each in (cache["with"]["key"], run["env"]["NUMBA_CACHE_DIR"]))
    assert "restore-keys" not in cache["with"]


class Step(NamedTuple):
    """The result of a script of the action."""

    code: int
    out: str
    outputs: dict[str, str]
    folder: Path

    @property
    def words(self) -> list[str]:
        """The arguments of a stub in place of the checker."""
        return (self.folder / "words").read_text().splitlines()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkout with scenarios."""
    (tmp_path / "zk" / "deep").mkdir(parents=True)
    (tmp_path / "zk" / "zoo-3.cfg").write_text(zoo_cfg(1, 2, 3))
    (tmp_path / "zk" / "good.yaml").write_text(f"{SERVERS}expect: passed\n")
    (tmp_path / "zk" / "bad one.yaml").write_text(f"{SERVERS}{NEVER}expect: passed\n")
    (tmp_path / "zk" / "deep" / "-x.yaml").write_text("no scenario\n")
    return tmp_path


def run(action: dict[str, Any], folder: Path, python: str, **inputs: str) -> Step:
    """Run the script of the step `run` as the runner does, with this script as the interpreter."""
    (step,) = [each for each in action["runs"]["steps"] if each.get("id") == "run"]
    interpreter = folder / "temp" / "quorate" / "bin" / "python"
    interpreter.parent.mkdir(parents=True)
    interpreter.write_text(python)
    interpreter.chmod(0o755)
    given = {name: each.get("default", "") for name, each in action["inputs"].items()} | inputs
    environment = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: given[found[1]], value)
        for name, value in step["env"].items()
    }
    del environment["NUMBA_CACHE_DIR"]  # use the kernels of this machine
    environment |= {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": os.environ.get("HOME", "/"),
        "PYTHONPATH": str(ROOT),
        "RUNNER_TEMP": str(folder / "temp"),
        "GITHUB_OUTPUT": str(folder / "outputs"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        "GITHUB_WORKSPACE": str(folder),
    }
    (folder / "script.sh").write_text(step["run"])
    command = [shutil.which("bash") or "bash", "--noprofile", "--norc", "-eo", "pipefail", str(folder / "script.sh")]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return Step(ended.returncode, ended.stdout + ended.stderr, outputs_of(folder / "outputs"), folder)


def outputs_of(path: Path) -> dict[str, str]:
    """The outputs of a step: lines `name=value`, and `name<<delimiter` with lines up to the delimiter."""
    found, lines = {}, iter(path.read_text().splitlines() if path.exists() else [])
    for line in lines:
        if "<<" in line:
            name, _, delimiter = line.partition("<<")
            found[name] = "\n".join(iter(lambda end=delimiter: next(lines) or "", delimiter))
        else:
            name, _, found[line.partition("=")[0]] = line.partition("=")
    return found


def test_the_checker_gets_files_that_globs_match_and_options_as_words(action: dict[str, Any], folder: Path) -> None:
    ended = run(action, folder, STUB, scenarios="zk/good.yaml\nzk/bad*.yaml\n\nzk/**/-*.yaml", options="--depth 3")

    assert ended.code == 0, ended.out
    assert ended.words[:3] == ["-m", "checker", "run"]
    assert ended.words[ended.words.index("--") + 1 :] == ["zk/good.yaml", "zk/bad one.yaml", "zk/deep/-x.yaml"]
    assert ended.words[5:8] == ["none", "--budget=60s", "--depth"]
    assert ended.outputs == {"exit-code": "0"}


def test_a_model_of_a_python_file_is_one_word(action: dict[str, Any], folder: Path) -> None:
    (folder / "my model.py").touch()
    ended = run(action, folder, STUB, scenarios="my model.py:model(3, kind='*')\nzk/good.yaml")
    assert ended.words[ended.words.index("--") + 1 :] == ["my model.py:model(3, kind='*')", "zk/good.yaml"]


def test_2_where_a_model_has_no_file(action: dict[str, Any], folder: Path) -> None:
    assert run(action, folder, STUB, scenarios="absent.py:model").code == 2


def test_without_a_budget_there_is_none(action: dict[str, Any], folder: Path) -> None:
    words = run(action, folder, STUB, scenarios="zk/good.yaml", budget="").words
    assert not [word for word in words if word.startswith("--budget")]


@pytest.mark.parametrize("evil", ["$(touch pwned)", "`touch pwned`", '"; touch pwned; "', "x\ntouch pwned"])
@pytest.mark.parametrize("name", ["scenarios", "from", "to", "budget", "options", "reports"])
def test_no_input_is_executed(action: dict[str, Any], folder: Path, name: str, evil: str) -> None:
    question = {"from": "a", "to": "b"} if name in ("from", "to") else {"scenarios": "zk/good.yaml"}
    run(action, folder, STUB, **{**question, name: evil})

    assert not (folder / "pwned").exists()


@pytest.mark.parametrize("reports", ["", " ", "\n"])
def test_2_where_no_folder_is_named(action: dict[str, Any], folder: Path, reports: str) -> None:
    """The files of an empty folder name were /junit.xml and others in the root folder."""
    ended = run(action, folder, STUB, scenarios="zk/good.yaml", reports=reports)

    assert (ended.code, ended.outputs) == (2, {"exit-code": "2"})
    assert [each.properties["title"] for each in commands(ended.out)] == ["no folder"]
    assert not (folder / "words").exists()


@pytest.mark.parametrize(
    ("name", "value", "code"), [("reports", "--github", 0), ("reports", "--", 0), ("budget", "--json", 2)]
)
def test_a_leading_dash_in_an_input_is_no_option(
    action: dict[str, Any], folder: Path, name: str, value: str, code: int
) -> None:
    """The value belongs to its option: a folder may have such a name, and a time may not."""
    ended = run(action, folder, REAL, scenarios="zk/good.yaml", **{name: value})

    assert ended.code == code, ended.out
    if code == 0:
        assert {each.name for each in (folder / value).iterdir()} >= {"junit.xml", "results.sarif", "report.json"}
    else:
        assert "'--json' is not a time" in ended.out


def test_options_cannot_end_the_options(action: dict[str, Any], folder: Path) -> None:
    """After the word `--`, the options of the action would be names of scenarios."""
    ended = run(action, folder, STUB, scenarios="zk/good.yaml", options="--depth 3 --")

    assert (ended.code, ended.outputs) == (2, {"exit-code": "2"})
    assert not (folder / "words").exists()


def test_the_planner_gets_both_states_as_words(action: dict[str, Any], folder: Path) -> None:
    ended = run(action, folder, STUB, **{"from": "my files", "to": "--json", "options": "--how one-by-one"})

    assert ended.words[:6] == ["-m", "checker", "rollout", "--from=my files", "--to=--json", "--in-one-go"]
    assert ended.words[6:] == ["--format", "github-comment", "--budget=60s", "--how", "one-by-one"]
    assert ended.outputs == {"exit-code": "0"}


@pytest.mark.parametrize(("options", "code"), [("", 22), ("--how one-by-one", 0), ("--how parallel", 12)])
def test_a_roll_out_that_is_safe_in_one_way_only_passes_in_that_way(
    action: dict[str, Any], folder: Path, options: str, code: int
) -> None:
    """From three servers to five, 4 and 5 must not start together (R10)."""
    states_of_the_how_to(folder)
    ended = run(action, folder, REAL, **{"from": "deployed", "to": "zookeeper", "options": options, "budget": "4s"})

    assert (ended.code, ended.outputs["exit-code"]) == (code, str(code))
    comment = (folder / "quorate-reports" / "comment.md").read_text()
    assert comment.startswith("<!-- quorate: rollout -->") and (folder / "summary.md").read_text() == comment


def blocks_of_the_how_to() -> list[str]:
    """Return the YAML blocks of the how-to."""
    text = (ROOT / "docs" / "how-to-gate-ci.md").read_text(encoding="utf-8")
    return re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def in_the_how_to(key: str, place: str) -> list[dict[str, Any]]:
    """Return the steps or the repositories of the one block of the how-to with this key and text."""
    (block,) = (block for block in blocks_of_the_how_to() if place in block)
    read = yaml.safe_load(block)
    items: list[dict[str, Any]] = read[key] if key in read else next(iter(read["jobs"].values()))[key]
    return items


def states_of_the_how_to(folder: Path, old: str = "deployed") -> None:
    """Write the two folders of the how-to: three servers that become five."""
    for name, sids in ((old, (1, 2, 3)), ("zookeeper", (1, 2, 3, 4, 5))):
        (folder / name).mkdir(parents=True)
        (folder / name / "zoo.cfg").write_text(zoo_cfg(*sids))


WORKFLOWS = {
    **{f"block {n}": block for n, block in enumerate(blocks_of_the_how_to()) if "\njobs:" in block},
    **{path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / ".github" / "workflows").glob("*"))},
}


@pytest.mark.parametrize("text", WORKFLOWS.values(), ids=WORKFLOWS)
def test_a_workflow_is_what_the_schema_of_workflows_allows(text: str, tmp_path: Path) -> None:
    (tmp_path / "workflow.yml").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", "workflow.yml"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("text", [ACTION.read_text("utf-8"), *blocks_of_the_how_to(), *WORKFLOWS.values()])
def test_an_action_of_others_is_named_by_a_commit_with_its_release(text: str) -> None:
    used = re.findall(r"uses: (.*)", text)
    assert [
        name for name in used if not re.fullmatch(r"(OWNER/quorate@COMMIT|[\w/-]+@[0-9a-f]{40}  # v\d).*", name)
    ] == []


def test_the_gate_of_the_how_to_passes_a_safe_change(action: dict[str, Any], folder: Path) -> None:
    states_of_the_how_to(folder, "deployed/zookeeper")
    *_, judged = in_the_how_to("steps", "from: deployed/zookeeper")
    assert run(action, folder, REAL, **judged["with"]).code == 0


def test_the_hook_of_the_how_to_passes_a_safe_change(folder: Path) -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    (repository,) = in_the_how_to("repos", "quorate-rollout")
    used = repository["hooks"][-1]
    states_of_the_how_to(folder)
    words = [sys.executable, "-c", QUORATE, *hooks[-1]["entry"].split()[1:], *used["args"]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    assert [hook["id"] for hook in hooks] == [hook["id"] for hook in repository["hooks"]]
    assert subprocess.run(words, cwd=folder, env=environment, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    "inputs", [{"from": "old"}, {"to": "new"}, {"from": "a", "to": "b", "scenarios": "zk/good.yaml"}]
)
def test_2_where_half_a_question_is_asked_or_two_are(
    action: dict[str, Any], folder: Path, inputs: dict[str, str]
) -> None:
    ended = run(action, folder, STUB, **inputs)

    assert (ended.code, ended.outputs) == (2, {"exit-code": "2"})
    assert not (folder / "words").exists()


@pytest.mark.parametrize("scenarios", ["zk/none.yaml", "zk/none*.yaml", "", "\n"])
def test_2_where_no_scenario_is_named(action: dict[str, Any], folder: Path, scenarios: str) -> None:
    ended = run(action, folder, STUB, scenarios=scenarios)

    assert (ended.code, ended.outputs) == (2, {"exit-code": "2"})
    assert [each.properties["title"] for each in commands(ended.out)] == ["no scenario"]
    assert not (folder / "words").exists()


def test_it_fails_with_the_checkers_code_and_leaves_annotations_a_summary_and_reports(
    action: dict[str, Any], folder: Path
) -> None:
    ended = run(action, folder, REAL, scenarios="zk/*.yaml")

    assert (ended.code, ended.outputs["exit-code"]) == (12, "12")
    assert [(each.level, each.properties["file"]) for each in commands(ended.out)] == [("error", "zk/bad one.yaml")]
    assert "1 of 2 as expected" in (folder / "summary.md").read_text()
    assert ended.outputs["sarif"] == "quorate-reports/results.sarif"
    reports = {each.name for each in (folder / "quorate-reports").iterdir()}
    assert reports == {"junit.xml", "results.sarif", "report.json", "traces"}
    assert list((folder / "quorate-reports" / "traces").glob("*.itf.json"))
