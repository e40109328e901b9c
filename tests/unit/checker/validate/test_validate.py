"""Journals of whole ensembles, from random schedules of the step functions: correct journals pass, misfits are named.

Servers run as in the models, message by message, with crashes, lost links and writes; each writes its journal as a live
server does. The journals are therefore made by the functions that validate them, and every changed line is false.
"""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from checker.command import ExitCode
from checker.engine import Model, Row
from checker.engine.semantics import fire, read
from checker.job import Verdict
from checker.models.ensemble import Budgets, File, Grain, Member, Setup, columns, ensemble
from checker.refinement.abstract_steps import Broken, Name, abstract_steps
from checker.validate import JournalError, Validation, journals, validate
from checker.validate.codec import digest_of
from checker.validate.global_history import GlobalHistory
from checker.validate.invariants import JournalRefinement
from refimpl.journal import Journal
from spec import server as spec_server
from spec.durable import Durable
from spec.effects import Effects, Send
from spec.election.channel import ChannelRules
from spec.election.messages import Start
from spec.election.state import ElectionRules
from spec.quorum import View, majority_view
from spec.server import Event, Server
from spec.variants import Variant
from spec.zab.packets import QuorumPing
from spec.zab.state import ZabRules

THREE = majority_view([1, 2, 3])
OBSERVED = majority_view([1, 2, 3], [4])
FAULTS = Budgets(
    crashes=3,
    restarts=3,
    cuts=1,
    heals=1,
    disconnects=2,
    notification_timeouts=1,
    early_timeouts=2,
    writes=10,
    syncs=1,
    pings=2,
)
UNMODIFIED = ZabRules()
CALM = Budgets(writes=60)
RARE = {
    "crash": 0.05, "cut": 0.05, "disconnect": 0.05, "give up": 0.05, "rebroadcast": 0.05, "heal": 0.2, "ping": 0.2,
    "client sync": 0.2, "lose leader": 0.5, "lose quorum": 0.5, "restart": 0.5,
}  # fmt: skip
"""The probability of an action relative to one of weight 1."""


# -- Live servers, simulated -------------------------------------------------------------------------------------


@dataclass
class Recorder:
    """A replacement for `spec.server` in the model that records its arguments and results."""

    done: list[tuple[Server, Event, Effects, Durable]] = field(default_factory=list)

    def step(self, server: Server, event: Event, rules: ElectionRules, zab: ZabRules) -> Any:
        stepped = spec_server.step(server, event, rules, zab)
        if stepped is not None:
            self.done.append((server, event, stepped.effects, stepped.state.durable))
        return stepped

    def crash(self, server: Server, zab: ZabRules) -> Server | None:
        return spec_server.crash(server, zab)


def ran(
    folder: Path,
    seed: int,
    view: View = THREE,
    budgets: Budgets = FAULTS,
    zab: ZabRules = UNMODIFIED,
    most: int = 500,
    writes: float = 1.0,
) -> list[Path]:
    """Return the journals of one run; every server starts within it."""
    file = File("zoo.cfg", view)
    members = tuple(Member(sid, file, late=True) for sid in sorted(view.members))
    setup = Setup(
        members, Grain.FINE, round_limit=12, channels=ChannelRules(capacity=1), clients_anywhere=True, budgets=budgets,
        zab=zab, variants=zab.variants,
    )  # fmt: skip
    recorder, clock = Recorder(), iter(range(10**9))
    written = {sid: Journal(folder / f"{sid}.journal", now=lambda: float(next(clock))) for sid in view.members}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "spec_server", recorder)
        model, chance = ensemble("a simulation", setup, []), random.Random(seed)
        row: Row | None = model.initial()
        for _ in range(most):
            row = None if row is None else moved(model, row, chance, recorder, RARE | {"client write": writes})
            for server, event, effects, durable in recorder.done if row is not None else ():
                if isinstance(event, Start):
                    written[server.sid].begin(server, columns.rules_of(setup), zab)
                written[server.sid].handled(event, effects, durable)
                written[server.sid].flush()
    for journal in written.values():
        journal.close()
    return [journal.path for journal in written.values() if journal.path.stat().st_size]


def moved(model: Model, row: Row, chance: random.Random, recorder: Recorder, weights: dict[str, float]) -> Row | None:
    """Return the row after a random move; None if there is none."""
    moves = []
    for rule in model.rules:
        seen = read(model, rule.reads, row)
        moves += list(rule.moves(*seen) or ()) if seen is not None else []
    while moves:
        place = chance.choices(range(len(moves)), [weights.get(move.action, 1.0) for move in moves])[0]
        recorder.done.clear()
        after = fire(model, row, moves.pop(place))
        if after is not None:
            return after
    return None


def six_runs(
    folder: Path, patch: pytest.MonkeyPatch, variant: Variant, budgets: Budgets, most: int = 500
) -> Iterator[list[Path]]:
    """Yield the journals of six runs with a variant, which the replay of them has as well."""
    zab = ZabRules(variants=frozenset({variant}))
    patch.setattr(journals, "zab_rules_of", lambda _: (zab, ()))
    for seed in range(6):
        below = folder / str(seed)
        below.mkdir()
        yield ran(below, seed, zab=zab, budgets=budgets, most=most)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The journals of three servers, sixty writes, no fault."""
    return ran(tmp_path_factory.mktemp("calm"), 1, budgets=CALM, most=1500)


def changed(paths: list[Path], to: Path, sid: int, line: int, change: Callable[[Any], None]) -> list[Path]:
    """Copy these journals, with one line of one server changed."""
    copies = []
    for path in paths:
        lines = path.read_text().splitlines()
        if path.name == f"{sid}.journal":
            record = json.loads(lines[line - 1])
            change(record)
            lines[line - 1] = json.dumps(record)
        copies.append(to / path.name)
        copies[-1].write_text("".join(each + "\n" for each in lines))
    return copies


def found_lines(paths: list[Path], wanted: Callable[[Any], bool]) -> Iterator[tuple[int, int]]:
    """Yield the server and the line of each record that satisfies a condition."""
    for path in paths:
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            if wanted(json.loads(line)):
                yield int(path.stem), number


def named(found: Validation) -> list[tuple[int, int]]:
    return [(misfit.sid, misfit.line) for misfit in found.mismatches]


# -- Correct journals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_the_journals_of_any_schedule_fit(tmp_path: Path, seed: int) -> None:
    zab = ZabRules(asynchronous_disk=seed % 4 != 0, asynchronous_commits=seed % 3 == 0)
    found = validate(ran(tmp_path, seed, OBSERVED if seed % 2 else THREE, zab=zab))

    assert (found.verdict, found.mismatches, found.exit_code) == (Verdict.PASSED, [], ExitCode.PASSED)
    assert found.merged == found.steps > 50


def test_the_figures_are_those_of_the_files(calm: list[Path]) -> None:
    found = validate(calm)
    records = [json.loads(line) for path in calm for line in path.read_text().splitlines()]

    assert (found.steps, found.lives, found.sids) == (len(records), 3, (1, 2, 3))
    assert found.facts == sum(len(record.get("f", ())) for record in records)
    assert found.transactions == sum(record.get("e", [""])[0] == "ClientWrite" for record in records)


def test_every_invariant_has_something_to_say_of_some_schedule(tmp_path: Path) -> None:
    premises: dict[str, int] = {}
    for seed in range(12):
        folder = tmp_path / str(seed)
        folder.mkdir()
        for name, count in validate(ran(folder, seed)).counts.items():
            premises[name] = premises.get(name, 0) + count.premise
            assert count.evaluated

    assert min(premises.values()) > 0, premises


def test_a_server_without_a_journal_is_taken_as_given_and_told(calm: list[Path]) -> None:
    for left_out in calm:
        found = validate([path for path in calm if path != left_out])

        assert (found.verdict, found.without_journal) == (Verdict.PASSED, (int(left_out.stem),))


def test_one_journal_alone_is_replayed(calm: list[Path]) -> None:
    found = validate(calm[:1])

    assert (found.verdict, found.without_journal) == (Verdict.PASSED, (2, 3))


@pytest.mark.parametrize("sid", [1, 2, 3])
def test_a_journal_that_was_copied_before_the_others_is_tolerated_and_told(
    calm: list[Path], tmp_path: Path, sid: int
) -> None:
    """If it is the leader's, followers read packets that no journal contains; if a follower's, its disk is unknown."""
    lines = (calm[0].parent / f"{sid}.journal").read_text().splitlines(keepends=True)
    (tmp_path / "early").write_text("".join(lines[: len(lines) // 2]))
    found = validate([*(path for path in calm if path.stem != str(sid)), tmp_path / "early"])

    assert (found.verdict, found.merged) == (Verdict.PASSED, found.steps)
    assert any(f"packets of server {sid} that are not in its journal" in note for note in found.notes)
    assert any(note.startswith("Durability: not evaluated") for note in found.notes)


def test_no_order_is_needed_of_the_clocks(calm: list[Path], tmp_path: Path) -> None:
    """The clock of one server is an hour behind; the packets that it read were still sent earlier."""
    copies = []
    for path in calm:
        records = [json.loads(each) for each in path.read_text().splitlines()]
        for record in records:
            record["t"] -= 3600 * (path.stem == "2")
        copies.append(tmp_path / path.name)
        copies[-1].write_text("".join(json.dumps(each) + "\n" for each in records))

    assert validate(copies).verdict is Verdict.PASSED


# -- Misfits and their lines -------------------------------------------------------------------------------------


def test_a_changed_vote_is_a_notification_that_nobody_sent_or_a_step_that_does_not_fit(
    calm: list[Path], tmp_path: Path
) -> None:
    sid, line = next(found_lines(calm, lambda record: record.get("e", [""])[0] == "Deliver"))

    def other_leader(record: Any) -> None:
        record["e"][2][2][1] = 1 + record["e"][2][2][1] % 3

    assert named(validate(changed(calm, tmp_path, sid, line, other_leader)))[0] == (sid, line)


@pytest.mark.parametrize("packet", ["Proposal", "Commit", "Ack"])
def test_a_changed_zxid_is_found_where_it_is_read(calm: list[Path], tmp_path: Path, packet: str) -> None:
    wanted = list(found_lines(calm, lambda r: r.get("e", [""])[0] == "Receive" and r["e"][2][0] == packet))
    sid, line = wanted[len(wanted) // 2]

    def next_one(record: Any) -> None:
        if packet == "Proposal":
            record["e"][2][1][0] += 1
        else:
            record["e"][2][1] += 1

    assert named(validate(changed(calm, tmp_path, sid, line, next_one)))[0] == (sid, line)


def test_a_changed_value_is_found_though_the_protocol_never_looks_into_it(calm: list[Path], tmp_path: Path) -> None:
    sid, line = next(found_lines(calm, lambda r: r.get("e", [""])[0] == "Receive" and r["e"][2][0] == "Proposal"))

    def other_value(record: Any) -> None:
        record["e"][2][1][1] = "0123456789abcdef"

    assert named(validate(changed(calm, tmp_path, sid, line, other_value)))[0] == (sid, line)


def test_a_changed_fact_is_found_where_it_is_reported(calm: list[Path], tmp_path: Path) -> None:
    for fact in ("Delivered", "Broadcast", "Committed", "EpochEstablished", "VoteReceived"):
        sid, line = list(found_lines(calm, lambda r, fact=fact: any(f[0] == fact for f in r.get("f", ()))))[-1]

        def other_server(record: Any, fact: str = fact) -> None:
            next(each for each in record["f"] if each[0] == fact)[1] += 1

        assert named(validate(changed(calm, tmp_path, sid, line, other_server))) == [(sid, line)]


def test_an_event_that_is_impossible_is_found(calm: list[Path], tmp_path: Path) -> None:
    sid, line = next(found_lines(calm, lambda record: record.get("e", [""])[0] == "Deliver"))

    def applied(record: Any) -> None:
        record["e"] = ["Applied"]

    found = validate(changed(calm, tmp_path, sid, line, applied))
    assert (named(found)[0], found.mismatches[0].clause) == ((sid, line), "the event is impossible in this state")


def test_an_ack_that_was_never_sent_is_found_though_each_journal_fits_by_itself(tmp_path: Path) -> None:
    """A follower logs the last write and acknowledges it; its journal has a PING in place of `Synced`."""
    paths = ran(tmp_path, 1, budgets=Budgets(writes=2), most=400)
    acked = found_lines(paths, lambda r: r.get("e", [""])[0] == "Receive" and r["e"][2][0] == "Ack")
    leader, line = max(acked, key=lambda each: each[1])
    source = json.loads((tmp_path / f"{leader}.journal").read_text().splitlines()[line - 1])["e"][1]
    last = max(line for sid, line in found_lines(paths, lambda r: r.get("e") == ["Synced"]) if sid == source)
    lines = (tmp_path / f"{source}.journal").read_text().splitlines()[: last - 1]
    answered = digest_of((Send(leader, QuorumPing()),))
    lines.append(json.dumps({"n": last - 1, "t": 1e6, "e": ["Receive", leader, ["Ping"]], "x": answered}))
    (tmp_path / f"{source}.journal").write_text("".join(f"{each}\n" for each in lines))
    found = validate(paths)

    assert validate([tmp_path / f"{source}.journal"]).verdict is Verdict.PASSED
    assert (named(found), found.mismatches[0].event) == ([(leader, line)], f"packet of server {source}")


def test_a_line_that_is_missing_is_named_by_the_next(calm: list[Path], tmp_path: Path) -> None:
    lines = calm[0].read_text().splitlines(keepends=True)
    (tmp_path / "1.journal").write_text("".join([*lines[:20], *lines[21:]]))

    with pytest.raises(JournalError, match=r"1\.journal:21: this is record 21, and record 20 is next"):
        validate([tmp_path / "1.journal"])


def test_swapped_lines_are_named(calm: list[Path], tmp_path: Path) -> None:
    lines = calm[0].read_text().splitlines(keepends=True)
    (tmp_path / "1.journal").write_text("".join([*lines[:20], lines[21], lines[20], *lines[22:]]))

    with pytest.raises(JournalError, match=r"1\.journal:21: this is record 21, and record 20 is next"):
        validate([tmp_path / "1.journal"])


def test_swapped_steps_are_found_also_where_their_numbers_are_not(calm: list[Path], tmp_path: Path) -> None:
    """Two commits at a follower, each with the facts of the other."""
    commits = list(found_lines(calm, lambda r: r.get("e", [""])[0] == "Receive" and r["e"][2][0] == "Commit"))
    (sid, line), (_, other) = next((a, b) for a, b in pairwise(commits) if a[0] == b[0] and b[1] > a[1])
    records = [json.loads(each) for each in (calm[0].parent / f"{sid}.journal").read_text().splitlines()]
    records[line - 1], records[other - 1] = records[other - 1], records[line - 1]
    for number, record in enumerate(records):
        record["n"] = number
    (tmp_path / f"{sid}.journal").write_text("".join(json.dumps(each) + "\n" for each in records))
    others = [path for path in calm if path.stem != str(sid)]

    assert named(validate([*others, tmp_path / f"{sid}.journal"]))[0] == (sid, line)


# -- Defects -----------------------------------------------------------------------------------------------------

CAUGHT = {
    Variant.NEWLEADER_ACK_BEFORE_SYNC: range(2),
    Variant.LOG_OUT_OF_ORDER: range(2),
    Variant.COMMIT_BEFORE_QUORUM: range(2),
    Variant.ACK_BEFORE_LOG: range(2),
    Variant.LOGGED_AFTER_UPTODATE: range(8),
    Variant.SYNC_WITHOUT_TAIL: range(8),
    Variant.COMMITS_AFTER_UPTODATE: range(8),
}
"""Variants, and schedules; some of these schedules expose the variant."""


@pytest.mark.parametrize("variant", CAUGHT, ids=lambda variant: variant.value)
def test_servers_with_a_defect_do_not_fit_the_specification_without_it(tmp_path: Path, variant: Variant) -> None:
    zab = ZabRules(variants=frozenset({variant}))
    verdicts = set()
    for seed in CAUGHT[variant]:
        folder = tmp_path / str(seed)
        folder.mkdir()
        found = validate(ran(folder, seed, zab=zab))
        verdicts.add(found.verdict)
        assert any(variant.value in note for note in found.notes)

    assert Verdict.VIOLATED in verdicts


@pytest.mark.parametrize(
    ("variant", "invariants"),
    [
        (Variant.COMMIT_BEFORE_QUORUM, {"Durability"}),
        (Variant.ACK_BEFORE_LOG, {"Durability"}),
        (Variant.LOG_OUT_OF_ORDER, {"HistoryConsistency", "LocalPrimaryOrder", "ProcessConsistency", "OneTxnPerZxid"}),
    ],
    ids=lambda value: value.value if isinstance(value, Variant) else "",
)
def test_what_is_settled_is_left_out_and_the_same_invariant_is_found_at_the_same_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: Variant, invariants: set[str]
) -> None:
    """The replay has the same variant, so only invariants can detect it."""
    seen = set()
    budgets = Budgets(crashes=2, restarts=2, disconnects=1, writes=30)
    for paths in six_runs(tmp_path, monkeypatch, variant, budgets, most=800):
        short = validate(paths)
        with monkeypatch.context() as whole:
            whole.setattr(GlobalHistory, "settle", lambda _: None)
            whole.setattr("checker.validate.invariants.WHOLE", 10**9)
            assert validate(paths).mismatches == short.mismatches
        seen |= {misfit.invariant for misfit in short.mismatches}

    assert seen and seen <= invariants


@pytest.mark.parametrize("seed", range(4))
def test_a_long_journal_is_replayed_once_more_with_the_same_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    paths = ran(tmp_path, seed)
    short = validate(paths)
    monkeypatch.setattr("checker.validate.replay.SHORT", 20)
    assert replace(validate(paths), seconds=short.seconds) == short


def test_a_long_run_whose_writes_come_one_by_one_is_looked_at_in_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    longest = 0
    log_of = GlobalHistory.log_of

    def watched(past: GlobalHistory, image: Any) -> Any:
        nonlocal longest
        log = log_of(past, image)
        longest = max(longest, len(log))
        return log

    monkeypatch.setattr(GlobalHistory, "log_of", watched)
    found = validate(ran(tmp_path, 1, budgets=CALM, most=1500, writes=0.05))

    assert (found.verdict, found.transactions) == (Verdict.PASSED, 60)
    assert longest < 20


# -- The refinement of abstract Zab ------------------------------------------------------------------------------

BROKEN = {
    Variant.COMMIT_BEFORE_QUORUM: "commit: the set is a quorum",
    Variant.ACK_BEFORE_LOG: "ack: the transaction is on disk",
    Variant.SYNC_WITHOUT_TAIL: "enter: all initial transactions are on disk",
    Variant.LOG_OUT_OF_ORDER: "the disk: the log is that of the abstract state",
    Variant.QUEUE_SURVIVES_SHUTDOWN: "synchronise: the reign is established",
}
"""The condition of abstract Zab that each variant breaks; the last one breaks no invariant in these schedules."""


@pytest.mark.parametrize("seed", range(12))
def test_each_step_of_any_schedule_is_a_step_of_abstract_zab(tmp_path: Path, seed: int) -> None:
    view = OBSERVED if seed % 4 == 3 else THREE
    found = validate(ran(tmp_path, seed, view, Budgets(crashes=3, restarts=3, disconnects=2, writes=20), most=700),
                     refines=True)  # fmt: skip
    assert (found.verdict, found.notes) == (Verdict.PASSED, [])
    assert found.counts["RefinesAbstractZab"].premise > 20


@pytest.mark.parametrize("variant", BROKEN, ids=lambda variant: variant.value)
def test_a_defect_breaks_a_condition_of_abstract_zab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: Variant
) -> None:
    """The replay has the same variant, so each step fits."""
    clauses = set()
    for paths in six_runs(tmp_path, monkeypatch, variant, Budgets(crashes=2, restarts=2, disconnects=1, writes=10)):
        found = validate(paths, refines=True)
        clauses |= {each.clause for each in found.mismatches if each.invariant == "RefinesAbstractZab"}

    assert BROKEN[variant] in clauses


def test_without_the_journal_of_a_voter_the_refinement_is_not_judged(calm: list[Path]) -> None:
    found = validate(calm[:2], refines=True)
    assert found.counts["RefinesAbstractZab"].evaluated == 0
    assert "RefinesAbstractZab: not judged where a voter has no journal" in found.notes


class TakenStep(NamedTuple):
    """A step of a server that concerns abstract Zab."""

    before: Server
    event: Event | None
    after: Server
    effects: Effects


def taken_steps(paths: list[Path]) -> list[TakenStep]:
    """The steps of some journals that concern abstract Zab, and the ends of processes, in the common order."""
    taken: list[TakenStep] = []

    class Watched(JournalRefinement):
        def stepped(
            self, before: Server, event: Event | None, after: Server, effects: Effects, settled: int
        ) -> tuple[Broken, ...]:
            if event is None or abstract_steps(before, event, after, effects) is not None:
                taken.append(TakenStep(before, event, after, effects))
            return super().stepped(before, event, after, effects, settled)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("checker.validate.JournalRefinement", Watched)
        assert validate(paths, refines=True).verdict is Verdict.PASSED
    return taken


def acts(step: TakenStep, name: Name) -> bool:
    steps = abstract_steps(*step)
    return steps is not None and any(call.name is name for call in steps.calls)


@pytest.mark.parametrize("is_heard", [True, False])
def test_a_leader_that_has_forgotten_an_epoch_may_begin_it_again_only_if_no_learner_has_heard_of_it(
    calm: list[Path], is_heard: bool
) -> None:
    """A promise is made to a reign once, so its epoch must be on the disk of its server before LEADERINFO is sent.

    The process of the leader ends, and its disk lacks the epoch: it takes the same step once more.
    """
    steps = taken_steps(calm)
    begins = next(number for number, step in enumerate(steps) if acts(step, Name.BEGIN))
    promises = next(number for number, step in enumerate(steps) if acts(step, Name.PROMISE))
    assert begins < promises and steps[promises].before.sid != steps[begins].before.sid
    refinement = JournalRefinement()
    for step in steps[: promises + 1 if is_heard else begins + 1]:
        assert refinement.stepped(*step, settled=0) == ()
    leader = steps[begins]
    refinement.ended(leader.after, Server(leader.before.sid, leader.before.view, leader.after.durable), 0)
    broken = refinement.stepped(*leader, settled=0)
    assert broken == ((("begin", "the reign is a new one"),) if is_heard else ())


@pytest.mark.parametrize("seed", range(3))
def test_the_end_of_a_process_is_no_action_so_it_breaks_no_condition(tmp_path: Path, seed: int) -> None:
    """At whatever step it ends: the disk stays and nothing is sent."""
    steps = taken_steps(ran(tmp_path, seed, budgets=Budgets(crashes=3, restarts=3, disconnects=2, writes=20), most=700))
    assert len(steps) > 20
    for step in steps:
        stopped = Server(step.after.sid, step.after.view, step.after.durable)
        ended = abstract_steps(step.after, None, stopped, ())
        assert ended is None or ({call.name for call in ended.calls}, ended.before) == ({Name.LEAVE}, ended.after)
