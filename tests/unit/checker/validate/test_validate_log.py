"""Validation of the log of any system: against brute force, on files with errors, and on a Raft in threads."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from checker.cli import quorate
from checker.engine import Actor, Column, Model, Move, Outcome, Read, Rule, Send
from checker.engine.model import Row
from checker.engine.semantics import successors
from checker.job import Verdict
from checker.kit.events import Event
from checker.validate.log import EventLine, validate_log
from checker.validate.log.patterns import holds, says_something

ROOT = Path(__file__).parents[4]
EXAMPLES = ROOT / "docs/examples"

# Against brute force: small random models, and logs of random runs, projected and corrupted.

COLUMNS = ("a", "b", "c")
ACTIONS = ("set", "swap", "quiet")
VALUES = (0, 1, 2)


def random_model(choose: random.Random) -> Model:
    """Rules over one or two columns; each move gives one or two of them other values."""

    def rule(number: int) -> Rule:
        reads = tuple(choose.sample(COLUMNS, choose.randint(1, 2)))
        action = choose.choice(ACTIONS)
        table: dict[tuple[int, ...], list[Move]] = {}

        def moves(*values: int) -> list[Move]:
            return table.get(values, [])

        for values in [(one, two)[: len(reads)] for one in VALUES for two in VALUES]:
            sends = (Send(choose.choice(COLUMNS), choose.choice(VALUES)) for _ in range(choose.randint(1, 2)))
            if choose.random() < 0.7:
                table[values] = [Move(action, (number % 2,), tuple(sends))]
        return Rule(f"rule {number}", tuple(map(Read, reads)), moves, (action,))

    def actor(name: str) -> Actor:
        return Actor(name, (name,), lambda values, value: Outcome((value,)) if values[0] != value else None)

    rules = tuple(rule(number) for number in range(choose.randint(3, 6)))
    return Model("random", tuple(Column(name, 0) for name in COLUMNS), tuple(map(actor, COLUMNS)), rules)


def random_log(choose: random.Random, model: Model, processes: int) -> list[EventLine]:
    """The lines about a random run. The move "quiet" is never logged, and a line has a part of the step."""
    row, lines = model.initial(), list[EventLine]()
    for _ in range(choose.randint(1, 9)):
        possible = list(successors(model, row))
        if not possible:
            break
        move, row = choose.choice(possible)
        after = {name: row[model.index[name]] for name in COLUMNS if choose.random() < 0.3}
        if move.action != "quiet":
            arguments = move.arguments if choose.random() < 0.5 else ()
            event = Event(move.action, arguments, after)
        elif choose.random() < 0.5:
            event = Event(None, (), after)
        else:
            continue
        lines.append(EventLine("log", len(lines) + 1, "", choose.randrange(processes), event))
    return lines


def corrupted(choose: random.Random, lines: list[EventLine]) -> list[EventLine]:
    """The lines with one that says something else, or without one, or with two of a process in the other order."""
    place = choose.randrange(len(lines))
    line, rest = lines[place], [*lines[:place], *lines[place + 1 :]]
    what = choose.choice(("value", "action", "drop", "move"))
    if what == "value":
        event = Event(line.event.action, line.event.arguments, {choose.choice(COLUMNS): choose.choice(VALUES)})
        return [*lines[:place], line._replace(event=event), *lines[place + 1 :]]
    if what == "action":
        event = Event(choose.choice(("set", "swap")), (choose.randrange(2),), line.event.after)
        return [*lines[:place], line._replace(event=event), *lines[place + 1 :]]
    if what == "move":
        rest.insert(choose.randrange(len(lines)), line)
    return rest


class Searched(NamedTuple):
    """The lines that a run explains without a gap, and the states that explain all these lines."""

    explained: int
    rows: frozenset[Row]


def brute_force(model: Model, lines: list[EventLine], hidden: str) -> Searched:
    """Every run, with hidden moves anywhere, and without any reduction."""
    processes = [[place for place, line in enumerate(lines) if line.process == process] for process in range(2)]

    def says(event: Event, row: Row) -> bool:
        return all(row[model.index[name]] == value for name, value in event.after.items())

    def next_points(done: frozenset[int], row: Row) -> Iterator[tuple[frozenset[int], Row]]:
        firsts = [next((place for place in places if place not in done), None) for places in processes]
        for place in firsts:
            if place is not None and lines[place].event.action is None and says(lines[place].event, row):
                yield done | {place}, row
        for move, after in successors(model, row):
            if move.action == hidden:
                yield done, after
            for place in firsts:
                if place is not None and move.action == lines[place].event.action:
                    arguments = tuple(lines[place].event.arguments)
                    if move.arguments[: len(arguments)] == arguments and says(lines[place].event, after):
                        yield done | {place}, after

    seen = {(frozenset[int](), model.initial())}
    stack = list(seen)
    while stack:
        for point in next_points(*stack.pop()):
            if point not in seen:
                seen.add(point)
                stack.append(point)

    def gapless(done: frozenset[int]) -> int:
        return next(place for place in range(len(lines) + 1) if place not in done)

    most = max(gapless(done) for done, _ in seen)
    return Searched(most, frozenset(row for done, row in seen if gapless(done) == most))


@pytest.mark.parametrize("processes", [1, 2])
def test_the_search_agrees_with_brute_force(processes: int) -> None:
    """A run always validates; a corruption that no run explains is reported at the line where the last run ends."""
    violated = passed = 0
    for seed in range(400):
        choose = random.Random(f"{seed} {processes}")
        model = random_model(choose)
        lines = random_log(choose, model, processes)
        if not any(says_something(line.event) for line in lines):
            continue
        found = validate_log(model, lines, lambda move: move.action == "quiet")
        assert found.verdict is Verdict.PASSED
        for _ in range(3):
            wrong = corrupted(choose, lines)
            if not any(says_something(line.event) for line in wrong):
                continue
            expected = brute_force(model, wrong, "quiet")
            found = validate_log(model, wrong, lambda move: move.action == "quiet")
            assert found.explained == expected.explained
            if expected.explained == len(wrong):
                assert found.verdict is Verdict.PASSED
                passed += 1
                continue
            assert found.verdict is Verdict.VIOLATED
            assert found.stuck is wrong[expected.explained]
            assert found.misfit is not None
            assert found.misfit.line is found.stuck
            assert 1 <= found.misfit.candidates <= len(expected.rows)
            violated += 1
    assert violated > 200
    assert passed > 200


def test_the_run_of_a_log_is_one_of_the_model() -> None:
    """The run that is returned is carried out again: its moves are possible, and its lines come in their order."""
    hidden = 0
    for seed in range(200):
        choose = random.Random(f"run {seed}")
        model = random_model(choose)
        lines = random_log(choose, model, 2)
        found = validate_log(model, lines, lambda move: move.action == "quiet")
        row, told = model.initial(), list[EventLine]()
        for step in found.run:
            if step.move is not None:
                row = next(after for move, after in successors(model, row) if move == step.move)
            if step.line is None:
                assert step.move is not None
                assert step.move.action == "quiet"
                hidden += 1
            else:
                assert holds(step.line.event, model, row)
                told.append(step.line)
        if found.verdict is Verdict.PASSED:
            for process in range(2):
                expected = [line for line in lines if line.process == process]
                assert [line for line in told if line.process == process] == expected
    assert hidden > 20


def test_hidden_moves_before_a_look_are_found_and_bounds_decide_nothing() -> None:
    """The counter must be raised five times without a line; a search of three states cannot know."""
    model = counter(9)
    look = [EventLine("log", 1, "", 0, Event(None, (), {"count": 5}))]
    found = validate_log(model, look, lambda _: True)
    assert (found.verdict, len(found.run)) == (Verdict.PASSED, 6)
    assert validate_log(model, look, lambda _: True, states=3).verdict is Verdict.INCOMPLETE
    never = [EventLine("log", 1, "", 0, Event(None, (), {"count": 12}))]
    assert validate_log(model, never, lambda _: True).verdict is Verdict.VIOLATED
    assert validate_log(model, never, lambda _: True, states=9).verdict is Verdict.INCOMPLETE


def test_a_run_begins_in_any_first_state() -> None:
    begun = replace(counter(9), firsts=({"count": 2}, {"count": 6}))
    up = [EventLine("log", place, "", 0, Event("up", (), {"count": place + 6})) for place in (1, 2)]
    assert validate_log(begun, up, lambda _: False).verdict is Verdict.PASSED
    assert validate_log(begun, up[1:], lambda _: False).verdict is Verdict.VIOLATED


def counter(most: int) -> Model:
    """A counter from 0 that is raised by one."""
    rule = Rule("up", (Read("count"),), lambda n: [Move("up", (n,), (Send("count", 1),))] if n < most else [], ("up",))
    actor = Actor("count", ("count",), lambda values, more: Outcome((values[0] + more,)))
    return Model("counter", (Column("count", 0),), (actor,), (rule,))


# The command, on files.

COUNTER = """\
from checker.cli import quorate
from checker.engine import Actor, Column, Model, Move, Outcome, Read, Rule, Send
from checker.kit import Event, Events

rule = Rule("up", (Read("count"),), lambda n: [Move("up", (n,), (Send("count", 1),))], ("up",))
actor = Actor("count", ("count",), lambda values, more: Outcome((values[0] + more,)))
model = Model("counter", (Column("count", 0),), (actor,), (rule,))


def line(fields):
    return Event("up", (), {"count": fields["to"]}) if "to" in fields else None


events = Events(line, hidden=())
by_process = Events(line, hidden=(), process="who", time="at")
named = Events(process="who", ignored=["note"])
wrong = Events(lambda fields: Event("upp"))
text = Events(lambda fields: "up")
number = 3
misspelt = Events(line, hidden=("upp",))
no_list = Events(line, hidden="up")
"""


class Run(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def validated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Run]:
    """Run the command on logs with these contents."""
    monkeypatch.chdir(tmp_path)
    Path("counter.py").write_text(COUNTER)

    def run(*logs: str, events: str | None = None, options: tuple[str, ...] = ()) -> Run:
        files = [f"{place}.jsonl" for place in range(1, len(logs) + 1)]
        for file, log in zip(files, logs, strict=True):
            Path(file).write_text(log)
        named = ["--events", events] if events else []
        code = quorate.main(["validate", *files, "--model", "counter.py:model", *named, *options])
        return Run(code, *capsys.readouterr())

    return run


def test_codes_and_first_lines(validated: Callable[..., Run]) -> None:
    passed = validated('{"to": 1}\n\n{"note": 1}\n{"to": 2}\n', events="events")
    assert (passed.code, passed.out.splitlines()[0]) == (0, "passed: a run of the model explains all 2 events")
    violated = validated('{"to": 1}\n{"to": 3}\n{"to": 4}\n', events="events")
    assert violated.code == 12
    assert violated.out.startswith("violated: 1.jsonl:2: no run of the model explains this line")
    assert "after the move, count is 2, and not 3" in violated.out
    for log in ("", '{"note": 1}\n'):
        vacuous = validated(log, events="events")
        assert (vacuous.code, vacuous.out.split(":")[0]) == (21, "vacuous")
    unknown = validated('{"count": 70}\n', options=("--states", "50"))
    assert (unknown.code, unknown.out.split(":")[0]) == (20, "incomplete")
    assert "1.jsonl:1" in unknown.out


def test_a_function_alone_is_enough(validated: Callable[..., Run]) -> None:
    assert validated('{"to": 1}\n{"to": 2}\n', events="line").code == 0


def test_the_names_of_the_model_and_hidden_actions_by_default(validated: Callable[..., Run]) -> None:
    assert validated('{"action": "up", "arguments": [0], "who": 1}\n', events="named").code == 0
    assert (
        validated('{"action": "up", "arguments": [null], "count": 1, "who": 1, "note": 2}\n', events="named").code == 0
    )
    assert validated('{"action": "up", "arguments": [1], "who": 1}\n', events="named").code == 12
    hidden = validated('{"count": 3}\n')
    assert hidden.code == 0
    assert "may be hidden      up" in hidden.out


def test_each_file_or_each_process_has_its_own_order(validated: Callable[..., Run]) -> None:
    """Raised to 1 and 3 by one process, to 2 by another."""
    assert validated('{"to": 1}\n{"to": 3}\n', '{"to": 2}\n', events="events").code == 0
    merged = '{"to": 2, "who": "b", "at": 1}\n{"to": 1, "who": "a", "at": 2}\n{"to": 3, "who": "a", "at": 3}\n'
    assert validated(merged, events="by_process").code == 0
    assert validated(merged, events="events").code == 12
    wrong = merged.replace('"to": 3', '"to": 4')
    assert "1.jsonl:3: no run" in validated(wrong, events="by_process").out


def test_the_time_tells_which_line_is_first(validated: Callable[..., Run]) -> None:
    """Both processes raise to 1, which only one can; the later one by its time is the finding."""
    first, second = '{"to": 1, "who": "a", "at": 7}\n', '{"to": 1, "who": "b", "at": 3}\n'
    assert "1.jsonl:1: no run" in validated(first, second, events="by_process").out
    assert "2.jsonl:1: no run" in validated(first.replace("7", "2"), second, events="by_process").out


@pytest.mark.parametrize(
    ("log", "events", "error"),
    [
        ('{"to": 1}\n{"to": \n', "events", r"1.jsonl:2: it is not JSON"),
        ("[1]\n", "events", "1.jsonl:1: it is JSON and no object; a line is one JSON object"),
        ('{"note": "\xff"', "events", "1.jsonl:1: it is not JSON"),
        ("[" * 100_000, "events", "1.jsonl:1: it is not JSON"),
        ('{"cuont": 1}\n', None, "1.jsonl:1: no column is called 'cuont'; did you mean count?"),
        ('{"action": "upp"}\n', None, "1.jsonl:1: no action is called 'upp'; did you mean up?"),
        ('{"action": 3}\n', None, "1.jsonl:1: the action is 3; write a text"),
        ('{"action": "up", "arguments": 3}\n', None, "1.jsonl:1: the arguments of an event are 3; write a list"),
        ('{"arguments": [3]}\n', None, "1.jsonl:1: an event has arguments and no action"),
        ("{}\n", "wrong", "1.jsonl:1: no action is called 'upp'; did you mean up?"),
        ("{}\n", "text", "1.jsonl:1: the function from a line to its event returned 'up'"),
        ("{}\n", "by_process", "1.jsonl:1: it has no field 'who'"),
        ('{"who": 1, "at": []}\n', "by_process", "1.jsonl:1: its time 'at' is no number and no text"),
        ('{"who": 1, "at": 1, "to": 1}\n{"who": 2, "at": "1", "to": 2}\n', "by_process", "1.jsonl: some times (at)"),
        ("{}\n", "number", "counter.py: 'number' is int; name a checker.kit.Events"),
        ("{}\n", "event", "counter.py: it has no 'event'"),
        ('{"to": 1}\n', "misspelt", "no action is called 'upp'; did you mean up?"),
        ('{"to": 1}\n', "no_list", "hidden moves are up; write a list, as in [up]"),
    ],
)
def test_a_mistake_is_one_line(validated: Callable[..., Run], log: str, events: str | None, error: str) -> None:
    run = validated(log, events=events)
    assert run.code == 150
    assert run.out == ""
    assert run.err.startswith("error: ")
    assert run.err.count("\n") == 1
    assert error in run.err


def test_no_line_turns_into_control_characters(validated: Callable[..., Run]) -> None:
    run = validated('{"to": 5, "note": "\\u001b[31m", "\x1b": 1}\n'.replace("\x1b", "\\u001b"), events="events")
    assert run.code == 12
    assert "\x1b" not in run.out
    assert "\x1b" not in validated('{"\\u001b[2J": 1}\n').err


def test_a_long_line_is_refused(validated: Callable[..., Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checker.validate.log.reader.LOG_LINE", 20)
    run = validated('{"to": 1}\n{"note": "' + "x" * 20 + '"}\n', events="events")
    assert run.code == 150
    assert "1.jsonl:2: the line has more than 20 bytes" in run.err


def test_options_of_one_kind_are_refused_for_the_other(
    validated: Callable[..., Run], capsys: pytest.CaptureFixture[str]
) -> None:
    assert validated('{"to": 1}\n', options=("--refinement",)).code == 2
    assert quorate.main(["validate", "1.jsonl", "--states", "3"]) == 2
    assert "name its model with --model" in capsys.readouterr().err


def test_the_report_as_data(validated: Callable[..., Run]) -> None:
    data = json.loads(validated('{"to": 1}\n{"to": 3}\n', events="events", options=("--json",)).out)
    assert (data["verdict"], data["exit_code"], data["explained"], data["events"]) == ("violated", 12, 1, 2)
    assert data["misfit"]["line"] == 2
    assert data["misfit"]["reasons"] == [{"reason": "after the move, count is 2, and not 3", "candidates": 1}]
    assert [step["line"]["line"] for step in data["run"]] == [1]


# A Raft in threads, whose code has nothing in common with the model.


def raft(folder: Path, *options: str) -> list[str]:
    """Run the servers; return the paths of their logs."""
    program = EXAMPLES / "raft_servers.py"
    subprocess.run([sys.executable, program, folder, *options], check=True, timeout=60)
    return [str(path) for path in sorted(folder.glob("s?.jsonl"))]


def judged(logs: list[str], capsys: pytest.CaptureFixture[str], events: str = "events") -> dict[str, Any]:
    quorate.main(["validate", *logs, "--model", f"{EXAMPLES / 'raft_log.py'}:model", "--events", events, "--json"])
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


@pytest.mark.parametrize("options", [(), ("--random", "1"), ("--random", "2"), ("--random", "3")])
def test_the_logs_of_a_correct_raft_pass(
    options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = judged(raft(tmp_path, *options), capsys)
    assert result["verdict"] == "passed"
    assert result["explained"] == result["events"] >= 30


def test_a_second_vote_is_found_at_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The third server gets the requests of two candidates; the program changes its vote, and the model does not."""
    line = json.loads(judged(raft(tmp_path, "--bug", "votes-twice"), capsys)["misfit"]["text"])
    assert (line["server"], line["message"]) == ("s3", "RequestVote")
    votes = [json.loads(text) for text in (tmp_path / "s3.jsonl").read_text().splitlines() if '"voted"' in text]
    assert line == votes[1]
    assert votes[0]["voted"] != votes[1]["voted"]


@pytest.mark.parametrize("events", ["events", pytest.param("outcomes", marks=pytest.mark.slow)])
def test_a_commit_of_an_earlier_term_is_found_at_its_line(
    events: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The leader of term 2 commits the entry of term 1 that it has as the second one, when one other has it too."""
    line = json.loads(judged(raft(tmp_path, "--bug", "counts-older"), capsys, events)["misfit"]["text"])
    assert (line["event"], line["message"], line["commit"]) == ("got", "Appended", 2)
    log = [json.loads(text) for text in (tmp_path / f"{line['server']}.jsonl").read_text().splitlines()]
    before = log[: log.index(line)]
    assert [entry["term"] for entry in before if "term" in entry][-1] == 2
    assert next(entry["log"] for entry in reversed(before) if "log" in entry) == [[1, 1], [1, 2]]
