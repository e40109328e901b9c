"""The words of an answer on a terminal: few of them, in short sentences.

The answers are those of the transcripts. A word is what stands between spaces and has a letter or a digit; a command
counts as its words. A sentence ends with a full stop, a colon, a semicolon, a question mark or a line; in it a code
span is one word. A test of the files that an answer names is beside them.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from checker.rollout.answer import PlanRequest
from checker.rollout.inputs.sources import read_input
from checker.rollout.output.data import write_stages
from checker.rollout.output.markdown import markdown
from checker.rollout.planner import plan
from tests.support.rollout_runs import OPERATOR, fine, seen_state
from tests.support.transcripts import entries

MOST_WORDS, LONGEST_SENTENCE = 300, 25
TRANSCRIPTS = Path(__file__).parents[3] / "transcripts" / "rollout"
ANSWERS = [
    entry
    for name in ("answers_on_a_terminal", "larger_ensembles", "stories")
    for entry in entries((TRANSCRIPTS / f"{name}.txt").read_text(encoding="utf-8"))
    if "STDOUT=terminal" in entry.command and " | " not in entry.command
]


def words(text: str) -> list[str]:
    return [word for word in text.split() if re.search(r"\w", word)]


def sentences(text: str) -> Iterator[str]:
    """The sentences of a document, and the cells of its tables; not its blocks of code."""
    for line in re.sub(r"```.*?```", "", text, flags=re.DOTALL).splitlines():
        spans = re.sub(r"`[^`]*`", "code", re.sub(r"^\s*(-|\d+\.)\s", "", line))
        yield from spans.split("|") if line.startswith("|") else re.split(r"(?<=[.:;?])\**\s", spans)


def check(text: str) -> None:
    assert len(words(text)) <= MOST_WORDS
    assert [sentence for sentence in sentences(text) if len(words(sentence)) > LONGEST_SENTENCE] == []


@pytest.mark.parametrize("now", ["nowA", "nowB", "nowC"])
def test_the_answer_about_an_interrupted_roll_out_is_short_too(now: str) -> None:
    """As if every server had answered: files alone decide nothing."""
    inputs = read_input(str(OPERATOR / "three")), read_input(str(OPERATOR / "five"))
    made = plan(PlanRequest(*inputs, now=seen_state(OPERATOR / now, *inputs)), fine)
    text = markdown(made, traces=False, evidence=False)
    assert text.startswith("# Go on with the roll-out, or go back: both are safe\n")
    check(text)


@pytest.mark.parametrize("shown", [entry.shown for entry in ANSWERS], ids=[entry.command for entry in ANSWERS])
def test_an_answer_is_short_on_a_terminal(shown: tuple[str, ...]) -> None:
    check("\n".join(line for line in shown if not re.fullmatch(r"exit \d+", line)))
    assert "`--explain` prints " in shown[-1] or "`--explain` prints " in shown[-2]


def test_there_are_answers() -> None:
    assert len(ANSWERS) > 30


@pytest.mark.parametrize("inputs", [("five", "three"), ("abc", "abd")], ids=" to ".join)
def test_each_stage_names_the_file_of_each_server_and_the_file_exists(inputs: tuple[str, str], tmp_path: Path) -> None:
    """`--stages` writes the files of the first stage; those of the last one are the files of `--to`."""
    made = plan(PlanRequest(*(read_input(str(OPERATOR / name)) for name in inputs)), fine)
    write_stages(made, tmp_path)
    text = markdown(made, traces=False, evidence=False).partition("\n## If a step fails")[0]
    _, *stages = re.split(r"(?m)^### Stage \d$", text)
    assert len(stages) == 2
    for part, section in zip(made.stages, stages, strict=True):
        names = re.findall(r"`([^`\n]+\.cfg)`", section)
        if part.stage.new.given:
            assert set(names) == {given.origin for given in part.stage.new.servers.values()}
        paths = {
            sid: {Path(name.replace("DIR", str(tmp_path)).replace("/N/", f"/{sid}/")) for name in names}
            for sid in part.stage.new.members
        }
        members = [f"server.{sid}=" for sid in sorted(part.stage.new.members)]
        for named in paths.values():
            assert named
            for path in named:
                lines = path.read_text(encoding="utf-8").splitlines()
                assert [re.sub("=.*", "=", line) for line in lines if line.startswith("server.")] == members
