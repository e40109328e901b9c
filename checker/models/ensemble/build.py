"""Construction of the model of a setup: columns with their initial values, actors, rules, and the history before them;
and refinement of a run at the coarse grain to single messages.

The history is one run of the model, with the channel rules of the exploration. The servers start in the given order,
and every urgent step follows. The initial state is therefore reachable, including the last message of each channel.

Where an election is one step and the views of servers differ, several elections may be possible. The history then
follows the same start with messages: each server ends behind the leader that it follows there. If the elections in one
step cannot end that way, the history is rejected.

The oracle gives the result of an election in one step. `refine` replaces each of these steps by the fewest deliveries
and decisions with the same result, from the state that the run has reached in the fine grain, and copies every other
step. The refined run shows that a coarse counterexample is real, with every vote that was cast. If the messages cannot
reach a result, that is an error. The refined run is not necessarily the shortest fine run.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from checker.engine import Actor, Column, Finding, Kind, Limits, Model, Move, Property, Read, Row, Rule, Step
from checker.engine.semantics import successors
from checker.kit.actions import FAULTS, faults_actor
from checker.kit.environment import LINKS, links_actor
from checker.models.ensemble import columns
from checker.models.ensemble.actions import LOSSES, SETTLING, Budgets, FaultsOfServers, ServerAction, urgency
from checker.models.ensemble.columns import RecordedFacts
from checker.models.ensemble.connection import connection_actor, opening_actor
from checker.models.ensemble.history import History, history_actor, parts_read
from checker.models.ensemble.rules import pairs, rules
from checker.models.ensemble.setup import (
    CONNECTIONS,
    HISTORY,
    PLAN,
    VOTES,
    Grain,
    Prologue,
    Setup,
    channel_name,
    connection_name,
    server_name,
)
from checker.models.ensemble.status import ElectionStatus, election_status
from checker.models.ensemble.symmetry import groups_of, symmetry_of
from spec.election.channel import Channel, ChannelRules
from spec.quorum import Sid
from spec.server import Server

URGENT = frozenset(SETTLING) - {*LOSSES, ServerAction.SYNC_LATE}
"""The actions of the history; nothing is lost in it."""
ELECTION_SECONDS = 60.0
"""The limit for the refinement of one election; the largest of the shipped scenarios needs a few."""


class HistoryError(ValueError):
    """A history that is impossible, or has no outcome at this grain; `right` says what to write instead."""

    def __init__(self, what: str, right: str) -> None:
        super().__init__(what)
        self.right = right


class NotRefinedError(Exception):
    """A step of the coarse run is not possible in the fine grain; the message names the step."""


def ensemble(name: str, setup: Setup, properties: Iterable[Property] = (), *, keep_votes: bool = False) -> Model:
    """The model of an ensemble with these properties. Raises HistoryError if the history is impossible.

    The model records the votes that servers receive if a property reads them, or if `keep_votes` is true.
    """
    chosen = tuple(properties)
    votes = keep_votes or any(read.column == VOTES for prop in chosen for read in prop.reads)
    facts = RecordedFacts(votes, parts_read(chosen))
    channel_rules = _channel_rules(setup)
    model = _assemble(name, setup, chosen, facts, channel_rules)
    initial = _after_history(_assemble(name, _before_faults(setup), (), facts, channel_rules), setup, _guide(setup))
    late = frozenset(member.sid for member in setup.members if member.late)
    values = {**initial, FAULTS: FaultsOfServers(setup.budgets, late)}
    start = tuple(replace(column, initial=values.get(column.name, column.initial)) for column in model.columns)
    groups = groups_of(setup, [column.name for column in start])
    symmetry = symmetry_of(setup, groups, rules(setup, groups)) if groups else None
    return Model(name, start, model.actors, model.rules, chosen, symmetry)


def _assemble(
    name: str, setup: Setup, properties: tuple[Property, ...], kept: RecordedFacts, channel_rules: ChannelRules
) -> Model:
    """The model before any server runs.

    The channel rules are an argument because the history uses those of the run: its setup has no faults, and the
    last message of a channel, which is sent again after a fault of the run, may date from the history.
    """
    cells: list[Column] = []
    actors: list[Actor] = []
    for member in sorted(setup.members, key=lambda member: member.sid):
        server = Server(member.sid, member.file.view, member.durable, defects=member.software.defects)
        cells.append(Column(server_name(member.sid), server))
        actors.append(columns.server_actor(member.sid, setup, kept))
    notified = pairs(setup) if setup.grain is Grain.FINE else []
    for source, destination in notified:
        cells.append(Column(channel_name(source, destination), Channel()))
        actors.append(columns.channel_actor(source, destination, channel_rules, addressed=setup.addressed))
    late = frozenset(member.sid for member in setup.members if member.late)
    cells += [Column(FAULTS, FaultsOfServers(setup.budgets, late)), Column(LINKS, frozenset())]
    actors += [faults_actor(), links_actor()]
    if setup.keeps_connections:
        cells.append(Column(CONNECTIONS, frozenset()))
        actors.append(columns.connections_actor())
    if setup.plan:
        cells.append(Column(PLAN, 0))
        actors.append(columns.plan_actor())
    if kept.votes:
        cells.append(Column(VOTES, ()))
        actors.append(columns.votes_actor())
    if setup.zab is not None:
        cells += [Column(connection_name(*pair), None) for pair in setup.quorum_pairs]
        actors += [actor(*pair) for pair in setup.quorum_pairs for actor in (connection_actor, opening_actor)]
        if kept.parts:
            cells.append(Column(HISTORY, History()))
            actors.append(history_actor(kept.parts))
    return Model(name, tuple(cells), tuple(actors), rules(setup), properties)


def _channel_rules(setup: Setup) -> ChannelRules:
    """The rules of the channels: a channel remembers its last message only if a connection can break."""
    return msgspec.structs.replace(setup.channels, resend=setup.channels.resend and setup.connections_break)


def _before_faults(setup: Setup) -> Setup:
    """The same servers without faults, none of them running; the budget of elections never runs out."""
    members = tuple(replace(member, late=True) for member in setup.members)
    return replace(setup, members=members, budgets=Budgets(elections=len(members) ** 2), prologue=())


def _guide(setup: Setup) -> Model | None:
    """The same history with messages, if an election is one step and the views of its servers differ."""
    started = {sid for prologue in setup.prologue for sid in prologue.start}
    views = {member.file.view for member in setup.members if member.sid in started}
    if setup.grain is not Grain.ORACLE or len(views) < 2:
        return None
    with_messages = replace(
        _before_faults(setup), grain=Grain.FINE, discovery_in_one_step=False, round_limit=len(setup.sids) + 1
    )
    return _assemble("history", with_messages, (), RecordedFacts(False, frozenset()), _channel_rules(with_messages))


def _after_history(model: Model, setup: Setup, guide: Model | None) -> dict[str, Any]:
    """The values after the history. Servers outside the history boot at its end, unless late or started by the plan."""
    row = model.initial()
    guide_row = guide.initial() if guide is not None else ()
    mentioned = {sid for prologue in setup.prologue for sid in prologue.start}
    waiting = mentioned | setup.started_by_plan
    at_once = [m.sid for m in setup.members if not m.late and m.sid not in waiting]
    for prologue in (*setup.prologue, Prologue(tuple(sorted(at_once)), settle=False)):
        for sid in prologue.start:
            row = _start(model, row, sid)
            guide_row = _start(guide, guide_row, sid) if guide is not None else ()
        if prologue.settle and guide is not None:
            guide_row = _settled(guide, guide_row)
            row = _settled_alike(model, row, _leaders(guide_row))
        elif prologue.settle:
            row = _settled(model, row)
    return {column.name: value for column, value in zip(model.columns, row, strict=True)}


def _start(model: Model, row: Row, sid: Sid) -> Row:
    for move, after in successors(model, row):
        if move.action == ServerAction.START and move.arguments[0] == sid:
            return after
    raise HistoryError(
        f"server {sid} cannot start here: it runs already, or its own file does not name it",
        "start servers in an order that is possible",
    )


def _settled(model: Model, row: Row, is_right: Callable[[Move], bool] = lambda _: True) -> Row:
    """The row after all urgent steps, with only those elections that `is_right` accepts.

    An election by the oracle takes the largest possible membership.
    """
    while True:
        possible = [step for step in successors(model, row) if step[0].action in URGENT and is_right(step[0])]
        if not possible:
            return row
        _, row = min(possible, key=lambda step: urgency(step[0]))


def _settled_alike(model: Model, row: Row, leaders: Mapping[Sid, Sid | None]) -> Row:
    """The row after all urgent steps in which each server follows its leader. Raises HistoryError if there is none."""

    def is_right(move: Move) -> bool:
        if move.action != ServerAction.ELECT:
            return True
        leader, members = move.arguments
        return all(leaders[sid] == leader for sid in (leader, *members))

    after = _settled(model, row, is_right)
    if (reached := _leaders(after)) != leaders:
        sid = min(sid for sid in leaders if reached[sid] != leaders[sid])
        behind = {None: "looks for a leader", sid: "leads"}.get(leaders[sid], f"follows server {leaders[sid]}")
        raise HistoryError(
            f"with immediate delivery server {sid} {behind} after the history, and elections in one step do not end so",
            "write grain: fine, or let the servers start within the exploration (late: true)",
        )
    return after


def _leaders(row: Row) -> dict[Sid, Sid | None]:
    """The leader that each running server follows; a leader follows itself, and a LOOKING server has None."""
    leaders = {}
    for value in row:
        if isinstance(value, Server) and isinstance(status := election_status(value), ElectionStatus):
            leaders[value.sid] = status.leader
    return leaders


# Refinement.


def refine(model: Model, path: Iterable[Step]) -> tuple[Step, ...]:
    """Return the run of the fine model for a run of the same ensemble by the oracle. Raises NotRefinedError."""
    fine = [Step(None, model.initial())]
    for coarse in path:
        if coarse.move is None:
            continue
        if coarse.move.action == ServerAction.ELECT:
            leader, members = coarse.move.arguments
            fine += _election(model, fine[-1].row, leader, members)
        else:
            fine.append(_same(model, fine[-1].row, coarse.move))
    return tuple(fine)


def _same(model: Model, row: Row, move: Move) -> Step:
    for counterpart, after in successors(model, row):
        if (counterpart.action, counterpart.arguments) == (move.action, move.arguments):
            return Step(counterpart, after)
    raise NotRefinedError(f"{move.action} {move.arguments} is not possible message by message at this point of the run")


def _election(model: Model, row: Row, leader: Sid, members: tuple[Sid, ...]) -> tuple[Step, ...]:
    """Return the shortest run from `row` in which the members elect the leader; other servers take no step."""

    def decided(*seen: ElectionStatus | str) -> Finding | None:
        all_decided = all(isinstance(status, ElectionStatus) and status.leader == leader for status in seen)
        return Finding("they have decided") if all_decided else None

    kept_rules = [
        _of_servers(rule, members)
        for rule in model.rules
        if {ServerAction.DELIVER, ServerAction.DECIDE}.issuperset(rule.actions)
    ]
    goal = Property(
        "decided", tuple(Read(server_name(sid), election_status) for sid in members), decided, Kind.SOMETIMES
    )
    start = tuple(replace(column, initial=value) for column, value in zip(model.columns, row, strict=True))
    part = Model("an election", start, model.actors, tuple(kept_rules), (goal,))
    from checker.engine.search import explore  # noqa: PLC0415 (it loads numba)

    discovery = explore(part, Limits(seconds=ELECTION_SECONDS), until_witnessed=True).found.get(goal.name)
    if discovery is None:
        raise NotRefinedError(f"the election of server {leader} by {members} was not found message by message")
    return discovery.path[1:]


def _of_servers(rule: Rule, sids: tuple[Sid, ...]) -> Rule:
    """The rule with only those moves in which one of these servers acts."""

    def moves(*read: object) -> list[Move]:
        return [
            move for move in rule.moves(*read) or () if move.arguments[ServerAction(move.action).traits.actor] in sids
        ]

    return replace(rule, moves=moves)
