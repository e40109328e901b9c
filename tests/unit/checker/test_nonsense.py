"""No verdict, exit code, file or field for machines depends on the wording of a sentence of `checker`.

Each command runs twice, in two processes: as it is, and with nonsense in place of every sentence.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from checker.histories.record import save
from checker.scenario import bundled
from tests.support.command_line import scenarios_in
from tests.support.nonsense import Ended, run_all, shape_of
from tests.unit.checker.histories.test_histories import CREATE, SET, read
from tests.unit.checker.validate.test_validate import changed, found_lines, ran

THREE = "file: zoo-3.cfg\nservers: [1, 2, 3]\n"
SCENARIOS = {
    "passed": THREE + "grain: oracle\nsometimes: [AllSettled]\n",
    "violated": THREE + "always: [{NeverLeads: 3}]\nsometimes: [{Leads: 3}]\n",
    "vacuous": THREE + "grain: oracle\nsometimes: [{Leads: 1}]\n",
    "deadlock": "file: zoo-2.cfg\nservers: [1, 2]\ngrain: oracle\nfaults: {crashes: 1}\nfinal: [Serves]\n",
    "incomplete": THREE + "grain: oracle\nsometimes: [AllSettled]\nlimits: {states: 1}\n",
    "mistaken": THREE + "always: [OneLeadr]\n",
}
SHIPPED = {path.stem: path for path in bundled()}
FOLDERS = bundled()[0].parent.parent / "rollouts"
PROSE = frozenset((
    "about", "because", "bounds", "caption", "clause", "detail", "effect", "headline", "meaning", "name", "notes",
    "outcome", "reasons", "recommendation", "rule", "sentence", "taken", "text", "title", "values",
))  # fmt: skip
"""The fields of JSON documents with sentences; all other fields are for machines. The runs of `--nodes` have titles."""
MEASURED = frozenset((
    "began", "bytes_per_state", "endTimeUtc", "memory", "peak_bytes", "python_seconds", "seconds", "startTimeUtc",
    "states_per_second",
))  # fmt: skip
"""The fields that differ from run to run."""
EXEMPT = {
    "quorateFinding/v1": "the fingerprint of a finding covers its clause, as `checker.report.ci_reports` states",
}
"""Other fields that may differ, with the reason."""


PICTURES = (".svg", ".html")
"""The files whose places depend on the widths of letters."""


class Command(NamedTuple):
    """A command line, and its exit code."""

    words: Sequence[object]
    code: int


def commands(folder: Path) -> dict[str, Command]:
    """The command lines by name; what they write is in the folder `out`."""
    write, out = scenarios_in(folder), folder / "out"
    paths = {name: write(text, f"{name}.yaml") for name, text in SCENARIOS.items()}
    judged = [path for name, path in paths.items() if name != "mistaken"]
    (folder / "journals").mkdir()
    journals = ran(folder / "journals", 3)
    sid, line = next(found_lines(journals, lambda record: record.get("e", [""])[0] == "Deliver"))
    (folder / "wrong").mkdir()
    wrong = changed(journals, folder / "wrong", sid, line, lambda record: record.update(e=["Applied"]))
    save(folder / "linearizable.jsonl", [CREATE, SET, read("b", (4, 5), 2, 2, 1)])
    save(folder / "stale.jsonl", [CREATE, SET, read("a", (4, 5), 1, 1, 0, synced=True)])
    one, two, three = FOLDERS / "one", FOLDERS / "two", FOLDERS / "three"
    unsafe = ("--from", one, "--to", three, "--order", "2,3,1", "--leader", "1", "--faults", "0")
    safe = ("--from", two, "--to", three, "--faults", "0")
    upgrade = ("--from", three, "--to", three, "--release", "3.8.4", "--to-release", "3.9.5", "--faults", "0")
    versions = ("--from", FOLDERS / "reconfig-three", "--to", FOLDERS / "reconfig-five", "--budget", "3s")
    return {
        **{f"run, {name}": Command(("run", paths[name]), code) for name, code in
           {"passed": 0, "violated": 12, "vacuous": 21, "deadlock": 11, "incomplete": 20, "mistaken": 150}.items()},
        "run, JSON": Command(("run", "--json", *judged), 12),
        "run, liveness": Command(("run", SHIPPED["zookeeper-1419-never-elects"]), 0),
        "run, service": Command(("run", SHIPPED["r13-stale-after-moving"]), 0),
        "run, recipe": Command(("run", SHIPPED["r19-no-protection-never-served"]), 0),
        "run, message by message": Command(("run", "--refine", paths["violated"]), 12),
        "run, Markdown": Command(("run", "--format", "markdown", paths["violated"]), 12),
        "nodes": Command(("--nodes", 2), 0),
        "nodes, JSON": Command(("--nodes", 2, "--json"), 0),
        "gate": Command(
            ("run", "--profile", "pull-request", "--sarif", out / "gate.sarif", "--junit", out / "gate.xml",
             "--report", out / "gate.json", "--github", *judged), 12),
        "traces": Command(("run", "--traces", out / "traces", paths["violated"]), 12),
        "replay": Command(("replay", out / "traces" / "violated-NeverLeads-3.itf.json"), 0),
        "proofs": Command(("proofs", "--only", "votes"), 0),
        "quorums, JSON": Command(("quorums", "--json", folder / "zoo-3.cfg", folder / "zoo-5.cfg"), 12),
        "validate": Command(("validate", *journals), 0),
        "validate, JSON": Command(("validate", "--json", *journals), 0),
        "validate, misfit": Command(("validate", "--json", *wrong), 12),
        "history": Command(("history", folder / "linearizable.jsonl"), 0),
        "history, violated": Command(("history", "--json", folder / "stale.jsonl"), 12),
        "rollout, unsafe": Command(("rollout", "--json", *unsafe), 12),
        "rollout, unsafe, Markdown": Command(("rollout", *unsafe), 12),
        "rollout, safe": Command(("rollout", "--json", *safe, "--scenarios", out / "scenarios"), 0),
        "rollout, upgrade": Command(("rollout", "--json", *upgrade, "--leader", "3"), 0),
        "rollout, undecided": Command(("rollout", "--json", *versions), 20),
        "no command": Command(("rnu",), 2),
    }  # fmt: skip


ALWAYS_PROGRESS = "from checker.report import text as report_text; report_text.EVERY = 0"


class Outputs(NamedTuple):
    """The results of all commands, and the files that they wrote."""

    ended: dict[str, Ended]
    files: dict[str, str]


class Both(NamedTuple):
    """The outputs with sentences and with nonsense, and the expected exit codes."""

    codes: dict[str, int]
    plain: Outputs
    nonsense: Outputs


def outputs(folder: Path, lines: dict[str, Command], *, nonsense: bool, code: str = "") -> Outputs:
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    ended = run_all([line.words for line in lines.values()], nonsense=nonsense, code=code)
    files = {path.relative_to(out).as_posix(): path.read_text() for path in sorted(out.rglob("*")) if path.is_file()}
    return Outputs(dict(zip(lines, ended, strict=True)), files)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    folder = tmp_path_factory.mktemp("nonsense")
    lines = commands(folder)
    made = (outputs(folder, lines, nonsense=each, code=ALWAYS_PROGRESS) for each in (False, True))
    return Both({name: line.code for name, line in lines.items()}, *made)


def differences(plain: Any, nonsense: Any, field: str = "") -> Iterator[str]:
    """The places where two JSON documents differ, except in sentences and measured values."""
    if field in MEASURED or field in EXEMPT:
        return
    if isinstance(plain, dict) and field in PROSE:  # the names of values are prose too
        yield from differences([list(each) for each in plain.items()], [list(each) for each in nonsense.items()], field)
    elif isinstance(plain, dict) and isinstance(nonsense, dict) and list(plain) == list(nonsense):
        for key, value in plain.items():
            yield from differences(value, nonsense[key], key)
    elif isinstance(plain, list) and isinstance(nonsense, list) and len(plain) == len(nonsense):
        for one, other in zip(plain, nonsense, strict=True):
            yield from differences(one, other, field)
    elif isinstance(plain, str) and isinstance(nonsense, str) and field in PROSE:
        if shape_of(plain) != shape_of(nonsense):
            yield f"{field}: {plain} / {nonsense}"
    elif plain != nonsense:
        yield f"{field}: {plain} / {nonsense}"


def _comparable(text: str) -> list[str]:
    """The lines of a text without those about memory, which a small run may not have."""
    return [line for line in text.splitlines() if not line.startswith("  memory ")]


def text_differences(plain: str, nonsense: str) -> list[str]:
    """The differences of two outputs: documents by field, texts by the shape of each line."""
    try:
        one, other = json.loads(plain), json.loads(nonsense)
    except ValueError:
        mine, theirs = _comparable(plain), _comparable(nonsense)
        lines = [f"{a!r} / {b!r}" for a, b in zip(mine, theirs, strict=False) if shape_of(a) != shape_of(b)]
        return lines if len(mine) == len(theirs) else [f"{len(mine)} / {len(theirs)} lines", *lines]
    return list(differences(one, other))


def problems(both: Both) -> list[str]:
    """Everything but sentences in which the two processes differ, by command and by file."""
    found = []
    for name, plain in both.plain.ended.items():
        nonsense = both.nonsense.ended[name]
        if plain.code != nonsense.code:
            found.append(f"{name}: exit code {plain.code} / {nonsense.code} {nonsense.err[-200:]}")
        for one, other in ((plain.out, nonsense.out), (plain.err, nonsense.err)):
            found += [f"{name}: {each}" for each in text_differences(one, other)]
    if list(both.plain.files) != list(both.nonsense.files):
        found.append(f"files: {list(both.plain.files)} / {list(both.nonsense.files)}")
    for name, text in both.plain.files.items():
        if not name.endswith(PICTURES):
            found += [f"{name}: {each}" for each in text_differences(text, both.nonsense.files.get(name, ""))]
    return found


def test_nonsense_in_place_of_sentences_changes_nothing_for_machines(both: Both) -> None:
    found = problems(both)
    assert not found, "\n".join(found)


def test_the_commands_end_with_the_expected_codes(both: Both) -> None:
    assert {name: ended.code for name, ended in both.plain.ended.items()} == both.codes


def test_progress_is_not_compared(both: Both) -> None:
    """Its lines depend on the load of the machine and on the kernels that an earlier run has compiled."""
    assert (both.plain.ended["run, passed"].code, both.plain.ended["run, passed"].err) == (0, "")


def test_the_sentences_are_nonsense(both: Both) -> None:
    """Every command prints some sentence, so that the comparison is about something."""
    equal = [name for name, ended in both.plain.ended.items() if ended == both.nonsense.ended[name]]
    assert equal == []


MUTANT = """
from dataclasses import replace
from checker.cli import runner

judge = runner.judge

def mutant(*arguments, **options):
    judged = judge(*arguments, **options)
    code = 0 if 'no violation' in judged.sentence else 12
    return replace(judged, exit_code=code, reasons=tuple(each for each in judged.reasons if 'it leads' in each))

runner.judge = mutant
"""


def test_a_decision_by_the_wording_of_a_sentence_is_found(tmp_path: Path) -> None:
    """Of the mutant's two decisions, each shows in another scenario: the exit code, and a list."""
    write = scenarios_in(tmp_path)
    lines = {
        name: Command(("run", "--json", write(SCENARIOS[name], f"{name}.yaml")), 0) for name in ("passed", "violated")
    }
    plain, nonsense = (outputs(tmp_path, lines, nonsense=each, code=MUTANT) for each in (False, True))
    found = problems(Both({}, plain, nonsense))
    assert any(each.startswith("passed: exit code 0 / 12") for each in found)
    assert any(each.startswith("violated: reasons: ") for each in found)
    assert not any(each.startswith("violated: exit code") for each in found)
