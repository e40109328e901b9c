"""Chooses runs of a variant: short, without a violation, unlike one another, and the same ones for the same seed.

The model is that of the release: it has all of the release's defects. A run uses the variant if one of its steps leads
elsewhere without the variant. A search finds the shortest path to such a step for each server and event, and random
steps follow. The run shows the variant if the driver would see that: the
steps are repeated without the variant, where they are possible, and the states are compared as the driver sees them.
Steps that are not needed for this are left out, and the walk then goes on until nothing is on its way.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from checker.engine import Actor, Column, Finding, Kind, Limits, Move, Outcome, Property, Read, Rule, Step
from checker.engine.model import Model, Row
from checker.engine.search import explore
from checker.engine.semantics import answer, fire, successors
from checker.job import Job
from checker.models.ensemble import Setup
from checker.models.ensemble.actions import SETTLING, ServerAction
from checker.models.ensemble.columns import CRASH as ENDS
from checker.models.ensemble.setup import server_name
from checker.scenario import bundled, from_text
from checker.scenario.ensemble import OracleRefinement
from harness.reproduce.comparison import sees_early
from harness.reproduce.elections import vote_of
from harness.reproduce.schedule import Schedule, ScheduledStep, pending_appends, schedule_of, wire_form, with_losses
from spec.election.messages import QuorumLost
from spec.quorum import Sid, have_quorums
from spec.releases import RELEASES, Release, defects_of
from spec.server import Server
from spec.variants import Area, Variant, of_area
from spec.zab.events import Receive
from spec.zab.state import Append
from tests.reality.variants.visible import differences

FIRST = (Release(3, 8, 0), Release(3, 9, 5))
"""The releases of the findings, which come first."""
STEPS = 15
WALKS = 20  # from the first use of a variant on
MORE = 4  # steps after a use that is late in a run
MOST_OF_A_USE = 3  # runs that begin with one use, and are unlike one another
MOST_STATES = (20_000, 150_000)  # of the search for a use: more if there is none
MOST_ROWS = 40_000  # of a model, whose successors are kept
TOGETHER = {
    Variant.NEWLEADER_ACK_BEFORE_SYNC: Variant.PROPOSAL_ACK_BEFORE_NEWLEADER_ACK,
    Variant.SYNC_FROM_APPLIED: Variant.TREE_AHEAD_OF_LOG,
}
"""The defects that are left out with a variant: one changes all steps of it, the other changes none without it."""
OF_ANOTHER = {Variant.COMMITTED_LOG_WITH_GAP: Variant.TREE_AHEAD_OF_LOG}
"""The defects with the scenario of another one, because their own needs more steps than a run has."""
DISKS = {
    Variant.SNAPSHOT_SURVIVES_TRUNC: """\
servers:
  1: {epoch: 1, zxid: 1:1, log: [1:2]}
  2: {epoch: 1, zxid: 1:1, log: [1:2]}
  3: {epoch: 2, zxid: 1:2, log: [2:1]}
  4: {epoch: 1, log: [1:1, 1:2, 1:3]}
""",
    Variant.TRUNC_AFTER_SNAP: """\
servers:
  1: {epoch: 1, log: [1:1]}
  2: {epoch: 1, log: [1:1]}
  3: {epoch: 1}
""",
}
"""Other disks for a scenario.

The observer of ZOOKEEPER-4837 has the record that a TRUNC cuts the log at. A leader has a transaction behind its
snapshot, because one of 3.4.14 without any sends SNAP for TRUNC.
"""
WITHOUT_EVENTS = {
    Variant.FUZZY_SNAPSHOT: "the driver has no event for a snapshot that is being written while a server gives up",
    Variant.RESTORE_UNDONE: (
        "the driver has no event for the restore of a snapshot; `quorate reproduce restore-undone` executes one by hand"
    ),
}
"""The defects that need an event which the driver does not cause, so that a release does not show them in its runs."""
OF_DISCOVERY = frozenset({Variant.EPOCH_OF_ACTIVE_VIEW})
"""The defects of discovery. In their runs its packets are steps, and not a part of the election."""
HIDDEN = frozenset({Variant.COMMITS_AFTER_UPTODATE, Variant.EPOCH_BEFORE_LOG})
"""The defects that change nothing in a release with ZOOKEEPER-3911, whose NEWLEADER logs and applies nothing."""
LOSE_QUORUM, CRASH, FILL_DISK = ServerAction.LOSE_QUORUM, ServerAction.CRASH, ServerAction.FILL_DISK


class NoRunError(Exception):
    """A variant has no run that the driver can execute on a release; the message is the reason."""


_CHOSEN: dict[tuple[object, ...], "list[ChosenRun] | NoRunError"] = {}
"""What `choose` has found, by variant, defects and bounds: four releases have the same defects."""


@dataclass(frozen=True)
class ChosenRun:
    """A run of a job. Without the variant its step `uses` leads elsewhere, and the driver sees `sight` in step `shows`.

    `shows` is 0 if the driver sees nothing of it.
    """

    job: Job
    path: tuple[Step, ...]
    uses: int
    shows: int = 0
    sight: str = ""

    @property
    def schedule(self) -> Schedule:
        """The schedule for the driver."""
        return with_losses(schedule_of(self.job, self.path))

    @property
    def captions(self) -> tuple[str, ...]:
        """The steps in words."""
        return tuple(self.job.presenter.caption(step.move) for step in self.path if step.move is not None)

    @property
    def kind(self) -> tuple[str, ...]:
        """What makes a run unlike others: its steps, whatever servers take them."""
        return tuple(re.sub(r"\d+", "n", caption) for caption in self.captions)


def scenario_of(variant: Variant) -> Path:
    """The scenario of a defect, with the ensemble of its runs. Raises NoRunError if the driver has no events for it."""
    if variant in WITHOUT_EVENTS:
        raise NoRunError(WITHOUT_EVENTS[variant])
    if variant in of_area(Area.ELECTION):
        raise NoRunError("the driver cannot stop a server between two notifications of an election")
    name = OF_ANOTHER.get(variant, variant).value.lower()
    files = [path for path in bundled() if path.stem == name]
    if not files:
        raise NoRunError(f"there is no scenario {name}.yaml")
    return files[0]


def jobs_of(variant: Variant, release: Release) -> Iterator[tuple[Job, Job]]:
    """The ensembles of a variant's runs: each like the release, and without the variant. Raises NoRunError."""
    scenario = scenario_of(variant)
    text = scenario.read_text("utf-8")
    text = re.sub(r"servers:\n(  .*\n)+", DISKS.get(variant, r"\g<0>"), text)
    if variant in OF_DISCOVERY:
        text = text.replace("discovery: one-step\n", "")
    text = re.sub(r"(violations|always): .*\n", "", text).replace("expect: violated", "expect: passed")
    for other in (text, _richer(text), f"{_richer(text)}commits: async\n"):
        if other.count("commits: async") > 1:
            return
        like = _job(re.sub(r"variants: .*\n", f"like: {release}\n", other), scenario.parent)
        defects = _setup(like).all_variants - WITHOUT_EVENTS.keys()
        if variant in HIDDEN and Variant.LOGGED_AFTER_UPTODATE in defects:
            raise NoRunError("it changes no step: with ZOOKEEPER-3911, a learner logs and applies no DIFF at NEWLEADER")
        if variant not in defects:
            raise NoRunError("it changes nothing in its scenario with the other defects of the release")
        fewer = defects - {variant, TOGETHER.get(variant, variant)}
        yield _with(other, defects, scenario.parent), _with(other, fewer, scenario.parent)


def _richer(text: str) -> str:
    """The scenario with one more write, and the loss of one connection."""
    disks = ", full_disks: 1" if "full_disks" in text else ""
    text = re.sub(r"workload: .*\n|faults: .*\n", "", text)
    return f"{text}workload: {{writes: 2}}\nfaults: {{crashes: 2, restarts: 2, disconnects: 1{disks}}}\n"


def _with(text: str, variants: frozenset[Variant], folder: Path) -> Job:
    names = ", ".join(sorted(variant.value for variant in variants))
    return _job(re.sub(r"variants: .*\n", f"variants: [{names}]\n" if names else "", text), folder)


def _job(text: str, folder: Path) -> Job:
    return from_text(text, lambda name: (folder / name).read_text("utf-8"))


def _setup(job: Job) -> Setup:
    assert isinstance(job.refinement, OracleRefinement)
    return job.refinement.setup


class Steps:
    """The successors and the findings of a model's states, each computed once."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._successors: dict[Row, tuple[tuple[Move, Row], ...]] = {}
        self._violated: dict[Row, frozenset[str]] = {}

    def after(self, row: Row) -> tuple[tuple[Move, Row], ...]:
        """The possible moves of a state, and the states after them."""
        if row not in self._successors:
            if len(self._successors) >= MOST_ROWS:
                self._successors.clear()
            self._successors[row] = tuple(successors(self.model, row))
        return self._successors[row]

    def repeated(self, row: Row, move: Move) -> list[Row]:
        """The states after the move of another model, or of another state, here."""
        return [
            after for other, after in self.after(row)
            if (other.action, other.arguments) == (move.action, move.arguments)
        ]  # fmt: skip

    def imitated(self, row: Row, move: Move) -> list[Row]:
        """The states after the move of another model; the driver delivers a packet that looks the same to it, too."""
        return self.repeated(row, move) or [
            after for other, after in self.after(row) if other.action == move.action and _look_alike(other, move)
        ]

    def violated(self, row: Row) -> frozenset[str]:
        """The properties that are violated in a state."""
        if row not in self._violated:
            properties = [prop for prop in self.model.properties if prop.kind is Kind.ALWAYS]
            names = (prop.name for prop in properties if isinstance(answer(self.model, prop, row), Finding))
            self._violated[row] = frozenset(names)
        return self._violated[row]


def _look_alike(one: Move, other: Move) -> bool:
    """Whether two moves deliver packets of one connection that are the same on the wire, as the driver sees them."""
    if one.action != ServerAction.RECEIVE:
        return False
    (*ends, packet), (*other_ends, expected) = one.arguments, other.arguments
    return ends == other_ends and wire_form(packet) == wire_form(expected)


class Choice:
    """Chooses runs of one ensemble: `job` is like the release, `without` lacks the variant."""

    def __init__(self, job: Job, without: Job) -> None:
        self._job, self._without = job, Steps(without.model)
        self._steps = Steps(driven(job.model, _setup(job)))
        self.reasons = Counter[str]()
        self.longer: list[ChosenRun] = []
        """The runs with random steps at their ends."""

    def runs(self, rng: random.Random) -> Iterator[ChosenRun]:
        """Runs that use the variant, each at its shortest."""
        for path in self._uses():
            runs = [run for run in (self._judged(self._continued(path, rng)) for _ in range(WALKS)) if run is not None]
            runs.sort(key=lambda run: (not run.shows, len(run.path)))
            kinds = list({run.kind: run for run in reversed(runs)}.values())[::-1]
            yield from islice(self._unlike(kinds), MOST_OF_A_USE)

    def _unlike(self, runs: Iterable[ChosenRun]) -> Iterator[ChosenRun]:
        """Each run at its shortest, unless it has become like an earlier one."""
        kinds = set()
        for run in runs:
            needed = self._shortened(run)
            shorter = self._settled(needed)
            if shorter.kind not in kinds:
                kinds.add(shorter.kind)
                self.longer += islice(self._lengthened(needed), 2 * MOST_OF_A_USE)
                yield shorter

    def _uses(self) -> Iterator[tuple[Step, ...]]:
        """The shortest paths to the first use of the variant, for each server and event that may use it.

        If there is one alone, then also the shortest ones without an election of it.
        """
        paths = list(self._first_uses(self._steps.model))
        moves = [step.move for step in paths[0] if step.move is not None] if len(paths) == 1 else []
        for move in moves:
            if move.action == ServerAction.ELECT:
                paths += self._first_uses(restricted(self._steps.model, partial(_is_another, move)))
        yield from paths

    def _first_uses(self, model: Model) -> Iterator[tuple[Step, ...]]:
        model = watched(model, self._without.model)
        searches = (explore(model, Limits(states=states)).found for states in MOST_STATES)
        found = next(filter(None, searches), {})
        for discovery in sorted(found.values(), key=lambda discovery: (discovery.depth, discovery.prop.name)):
            yield tuple(Step(step.move, step.row[:-1]) for step in discovery.path)

    def repeated(self, run: ChosenRun) -> ChosenRun | None:
        """The run of another release, if it is one of this release, uses the variant, and adds no violation."""
        path = self._replayed(run.path[1:])
        judged = self._judged(path) if len(path) == len(run.path) else None
        if judged is None or not self._steps.violated(path[-1].row) <= self._steps.violated(judged.path[-1].row):
            return None
        whole = replace(judged, path=path)
        return None if obstacle(whole.schedule) else whole

    def _continued(
        self, path: Sequence[Step], rng: random.Random, violated: frozenset[str] | None = None
    ) -> tuple[Step, ...]:
        """A path with random steps at its end: first an action, then a move of it. Only these may be `violated`."""
        steps, most = list(path), max(STEPS, len(path) + MORE)
        while len(steps) <= most and (options := self._steps.after(steps[-1].row)):
            if violated is not None:
                options = tuple(option for option in options if self._steps.violated(option[1]) <= violated)
                if not options:
                    break
            action = rng.choice(sorted({move.action for move, _ in options}))
            steps.append(Step(*rng.choice([option for option in options if option[0].action == action])))
        return tuple(steps)

    def _judged(self, path: Sequence[Step]) -> ChosenRun | None:
        """The beginning of a path that shows the variant, or only uses it; None if it is of no use.

        It has no violation that the run without the variant does not have: that of ZOOKEEPER-5094 needs a violation of
        `sync-from-applied`.
        """
        schedule = schedule_of(self._job, path)
        row, uses, right = path[0].row, 0, 0
        for number, step in enumerate(path[1:], start=1):
            assert step.move is not None
            if not uses and fire(self._without.model, path[number - 1].row, step.move) != step.row:
                uses = number
            row = next(iter(self._without.imitated(row, step.move)), row)
            if not self._steps.violated(step.row) <= self._without.violated(row):
                break
            right = number
            sight = next(differences(schedule, step.row, row), "") if uses else ""
            if sight:
                return self._executable(ChosenRun(self._job, tuple(path[: number + 1]), uses, number, sight))
        return self._executable(ChosenRun(self._job, tuple(path[: right + 1]), uses)) if uses else None

    def _executable(self, run: ChosenRun) -> ChosenRun | None:
        reason = obstacle(run.schedule)
        if reason:
            self.reasons[reason] += 1
        return None if reason else run

    def _shortened(self, run: ChosenRun) -> ChosenRun:
        """The run without the steps that it does not need."""
        place = len(run.path) - 1
        while place > 0:
            path = self._replayed([*run.path[1:place], *run.path[place + 1 :]])
            shorter = self._judged(path)
            if shorter is not None and bool(shorter.shows) >= bool(run.shows) and len(shorter.path) < len(run.path):
                run, place = shorter, len(shorter.path)
            place -= 1
        return run

    def _lengthened(self, run: ChosenRun) -> Iterator[ChosenRun]:
        """The run with other random steps at its end, as long as nothing more is violated."""
        rng, violated = random.Random(" ".join(run.captions)), self._steps.violated(run.path[-1].row)
        for _ in range(WALKS):
            longer = replace(run, path=self._continued(run.path, rng, violated))
            if not obstacle(longer.schedule):
                yield longer

    def _replayed(self, steps: Iterable[Step]) -> tuple[Step, ...]:
        path = [Step(None, self._job.model.initial())]
        for step in steps:
            assert step.move is not None
            path += [Step(step.move, after) for after in self._steps.repeated(path[-1].row, step.move)[:1]]
        return tuple(path)

    def _settled(self, run: ChosenRun) -> ChosenRun:
        """The run with all that was on its way: packets arrive and disks write, as long as nothing is violated."""
        path, longer, violated = list(run.path), run, self._steps.violated(run.path[-1].row)
        while len(path) <= STEPS:
            options = [(move, after) for move, after in self._steps.after(path[-1].row) if move.action in SETTLING]
            options = [option for option in options if self._steps.violated(option[1]) <= violated]
            if not options:
                break
            path.append(Step(*min(options, key=lambda option: SETTLING.index(ServerAction(option[0].action)))))
            candidate = replace(run, path=tuple(path))
            if not obstacle(candidate.schedule):
                longer = candidate
        return longer


def driven(model: Model, setup: Setup) -> Model:
    """The model without the moves that the driver cannot cause: a part of `obstacle`, so that no search goes there."""
    servers = {server_name(sid) for sid in setup.sids}
    actors = [replace(actor, step=_driven(actor)) if actor.name in servers else actor for actor in model.actors]

    def is_possible(move: Move) -> bool:
        if move.action != ServerAction.ELECT or move.arguments[0] not in move.arguments[1]:
            return True
        views = setup.possible_views(move.arguments[0])
        return any(view.contains_quorum(frozenset(move.arguments[1])) for view in views)

    return restricted(Model(model.name, model.columns, tuple(actors), model.rules, model.properties), is_possible)


def restricted(model: Model, is_possible: Callable[[Move], bool]) -> Model:
    """The model with these moves alone."""

    def limited(rule: Rule) -> Rule:
        return replace(rule, moves=lambda *seen: [*filter(is_possible, rule.moves(*seen) or ())])

    return Model(model.name, model.columns, model.actors, tuple(map(limited, model.rules)), model.properties)


def _is_another(excluded: Move, move: Move) -> bool:
    return (move.action, move.arguments) != (excluded.action, excluded.arguments)


def _driven(actor: Actor) -> Callable[[tuple[Any, ...], Any], Outcome | None]:
    def step(values: tuple[Any, ...], operation: Any) -> Outcome | None:
        part = values[0].zab
        early = part is not None and not all(isinstance(item, Append) for item in part.queue[:1])
        if (operation == ENDS and early) or (
            isinstance(operation, QuorumLost) and part is not None and not part.serves
        ):
            return None
        return actor.step(values, operation)

    return step


USED = "used"
EVENTS = (
    "Diff", "Trunc", "Snap", "Proposal", "Commit", "Inform", "NewLeader", "UpToDate", "Ack", "AckEpoch",
    "Synced", "SyncedLate", "Resumed", "Applied", "Elected", "LeaderLost", "QuorumLost", "PeerClosed",
    "ClientWrite", "Start", "other",
)  # fmt: skip


def watched(model: Model, without: Model) -> Model:
    """The model up to the first step of a server that another model of the same columns would take otherwise."""
    others = {actor.name: actor for actor in without.actors}
    servers = [actor for actor in model.actors if actor.name.startswith(server_name("")) and len(actor.columns) == 1]
    actors = [_watched(actor, others[actor.name]) if actor in servers else actor for actor in model.actors]
    labels = [f"{actor.name} {event}" for actor in servers for event in EVENTS]
    properties = [Property(label, (Read(USED),), _is(label), Kind.SOMETIMES) for label in labels]
    unused = Read(USED, lambda used: None if used else True)
    rules = [_until_used(rule, unused) for rule in model.rules]
    return Model(model.name, (*model.columns, Column(USED, "")), tuple(actors), tuple(rules), tuple(properties))


def _until_used(rule: Rule, unused: Read) -> Rule:
    return replace(rule, reads=(*rule.reads, unused), moves=lambda *seen: rule.moves(*seen[:-1]))


def _is(label: str) -> Callable[[str], Finding | None]:
    return lambda used: Finding(label) if used == label else None


def _watched(actor: Actor, other: Actor) -> Actor:
    def step(values: tuple[Any, ...], operation: Any) -> Outcome | None:
        *own, used = values
        outcome = actor.step(tuple(own), operation)
        if outcome is None:
            return None
        if not used and outcome != other.step(tuple(own), operation):
            event = operation.packet if isinstance(operation, Receive) else operation
            name = type(event).__name__
            used = f"{actor.name} {name if name in EVENTS else 'other'}"
        return Outcome((*outcome.values, used), outcome.sends)

    return Actor(actor.name, (*actor.columns, USED), step)


def obstacle(schedule: Schedule) -> str:
    """The reason why the driver cannot execute a schedule; empty if there is none that is known."""
    following = [*schedule.steps[1:], None]
    return next(filter(None, map(partial(_obstacle, schedule), schedule.steps, following)), "")


def _obstacle(schedule: Schedule, step: ScheduledStep, after: ScheduledStep | None) -> str:
    action, arguments = step.move.action, step.move.arguments
    part = schedule.server(step.before, arguments[0]).zab if action in (LOSE_QUORUM, CRASH) else None
    if action == LOSE_QUORUM and not (part is not None and part.serves):
        return "a leader that has not served waits initLimit for a quorum"
    if action == CRASH and part is not None and not all(isinstance(item, Append) for item in part.queue[:1]):
        return "a snapshot or an epoch is written when the server wants, and here a crash comes before"
    if action == ServerAction.ELECT and not _hears_a_quorum(schedule, step.before, *arguments):
        return "an election that needs the vote of a server which does not take part, or has another epoch in its vote"
    if action == ServerAction.ELECT and _learns(schedule, step.before, *arguments):
        return "an election in which a server would learn a later view before it decides"
    if _forgets_a_view(schedule, step):
        return "a server has seen the view of a proposal, and the model sees it with NEWLEADER"
    if action == ServerAction.ELECT and _saves(schedule, step, arguments[0]):
        return "a leader of 3.4.14 takes no snapshot of what it has in memory alone, and that of the model does"
    if any(_writes_again(schedule.server(step.after, sid)) for sid in schedule.setup.sids):
        return "a record is written again, and its log file may be made anew before that"
    if action == FILL_DISK and not _opens_a_file(schedule, arguments[0], step):
        return "a record that cannot be written stays in memory, unless a file of the log is made for it"
    alone = [sid for sid in schedule.setup.sids if schedule.leads_without_quorum(step.after, sid)]
    ends = after is None or (after.move.action in (LOSE_QUORUM, CRASH) and after.move.arguments[0] in alone)
    if not ends and any(schedule.serves(step.after, sid) for sid in alone):
        return "a leader without a quorum goes on"
    return ""


def _learns(schedule: Schedule, row: Row, leader: Sid, members: tuple[Sid, ...]) -> bool:
    """Whether a member of an election would learn a later view, as a server does that looks for a leader.

    Source: `FastLeaderElection.Messenger.WorkerReceiver.run` (processReconfig).
    """
    joined = schedule.group(row, leader) | {leader, *members}
    versions = {sid: schedule.server(row, sid).view.version for sid in joined}
    looking = [sid for sid in joined if schedule.server(row, sid).zab is None]
    return any(versions[sid] < max(versions.values()) for sid in looking)


def _forgets_a_view(schedule: Schedule, step: ScheduledStep) -> bool:
    """Whether a learner that has read the proposal of a view gives up before the model sees the view."""
    return any(
        sees_early(schedule.server(step.before, sid)) and schedule.server(step.after, sid).zab is None
        for sid in schedule.setup.sids
    )


def _saves(schedule: Schedule, step: ScheduledStep, leader: Sid) -> bool:
    """Whether a new leader has transactions in memory alone, which the model then saves (`spec.zab.memory.saved`).

    A leader takes a snapshot in `ZooKeeperServer.loadData`, and not in the releases without ZOOKEEPER-1549.
    """
    takes_none = Variant.SNAPSHOT_OF_UNCOMMITTED not in schedule.setup.all_variants
    return takes_none and bool(schedule.server(step.before, leader).remains.unlogged)


def _writes_again(server: Server) -> bool:
    """Whether a record that is in the log waits to be written, after a TRUNC that kept it, or an old thread's write.

    `FileTxnLog.append` names a file after its first record, and empties one of that name. The model has no files.
    """
    return not {txn.zxid for txn in server.durable.records}.isdisjoint(pending_appends(server))


def _opens_a_file(schedule: Schedule, sid: Sid, step: ScheduledStep) -> bool:
    """Whether the next write of a server is the first record of its process.

    `FileTxnLog.append` makes a file and its padding then, and fails before the record is in its buffer. Otherwise the
    record is in the buffer when the write fails, and the next one is written with it.
    """
    part, member = schedule.server(step.before, sid).zab, next(m for m in schedule.setup.members if m.sid == sid)
    written = len(schedule.server(schedule.initial, sid).durable.records) > len(member.durable.records)
    for earlier in schedule.steps[: schedule.steps.index(step)]:
        before, after = schedule.server(earlier.before, sid), schedule.server(earlier.after, sid)
        grows = len(after.durable.records) > len(before.durable.records)
        written = after.election is not None and (written or grows)
    return part is not None and isinstance(part.queue[0], Append) and not written


def _hears_a_quorum(schedule: Schedule, row: Row, leader: Sid, members: tuple[Sid, ...]) -> bool:
    """Whether the members of an election are a quorum, or those who follow the leader with one vote (`Vote.equals`).

    A member with a better vote does not vote for the leader, and follows when the others do.
    A follower that is being synchronised has the epoch before in its vote, and its leader that serves has the new one.
    A server that has lost its leader counts both in no round (`FastLeaderElection.lookForLeader`, `outofelection`).
    The model of an election in one step has no rounds, and lets it join.
    """
    views = [view for sid in {leader, *members} for view in schedule.server(row, sid).peer.views]
    votes = {sid: vote_of(schedule.server(row, sid).peer) for sid in (leader, *members)}
    voters = frozenset(sid for sid, vote in votes.items() if vote <= votes[leader])
    if leader not in members:
        group, serves = schedule.group(row, leader), schedule.serves(row, leader)
        voters = frozenset(sid for sid in group if schedule.serves(row, sid) is serves)
    return have_quorums(views, voters)


def choose(variant: Variant, release: Release, count: int, seed: int) -> list[ChosenRun]:
    """So many runs of a variant, unlike one another, the shortest first; those that show it before those that do not.

    If there are too few, some have the same steps at other servers, and then some have random steps at their ends.
    All releases of the variant have the runs of the first one, if they use the variant there too. Raises NoRunError.
    """
    key = variant, frozenset(defects_of(release)), count, seed
    if key not in _CHOSEN:
        try:
            _CHOSEN[key] = _as_first(variant, release, count, seed) or _chosen(variant, release, count, seed)
        except NoRunError as reason:
            _CHOSEN[key] = reason
    chosen = _CHOSEN[key]
    if isinstance(chosen, NoRunError):
        raise chosen
    return chosen


def _as_first(variant: Variant, release: Release, count: int, seed: int) -> list[ChosenRun]:
    """The runs of the first release with the variant, repeated here; none unless all of them can be."""
    first = next(other for other in (*FIRST, *RELEASES) if variant in defects_of(other))
    if first == release or len(chosen := choose(variant, first, count, seed)) < count:
        return []
    choices = [Choice(*jobs) for jobs in jobs_of(variant, release)]
    runs = [next(filter(None, (choice.repeated(run) for choice in choices)), None) for run in chosen]
    return [run for run in runs if run is not None] if None not in runs else []


def _chosen(variant: Variant, release: Release, count: int, seed: int) -> list[ChosenRun]:
    runs: dict[tuple[str, ...], ChosenRun] = {}
    alike: dict[tuple[str, ...], ChosenRun] = {}
    longer: dict[tuple[str, ...], ChosenRun] = {}
    reasons = Counter[str]()
    for number, (job, without) in enumerate(jobs_of(variant, release)):
        choice = Choice(job, without)
        for run in choice.runs(random.Random(f"{seed} {variant.value} {number}")):
            if runs.setdefault(run.kind, run).captions != run.captions:
                alike.setdefault(run.captions, run)
            if sum(bool(other.shows) for other in runs.values()) >= 2 * count:
                break
        reasons += choice.reasons
        longer |= {run.kind: run for run in choice.longer}
        chosen = _first_of(runs, alike, longer)
        if chosen and chosen[0].shows and len(chosen) >= count:
            break
    if not runs:
        raise NoRunError(
            reasons.most_common(1)[0][0] if reasons else f"no run of {STEPS} steps uses it without a violation"
        )
    return chosen[:count]


def _first_of(*parts: dict[tuple[str, ...], ChosenRun]) -> list[ChosenRun]:
    """The runs in the order of the choice, without those that another one begins with."""
    chosen: list[ChosenRun] = []
    for part in parts:
        for run in sorted(part.values(), key=lambda run: (not run.shows, len(run.path))):
            if not any(other.captions[: len(run.captions)] == run.captions for other in chosen):
                chosen.append(run)
    return chosen
