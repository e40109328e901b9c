"""Builds the model of a setup: columns with their initial values, actors, rules, and the history before them.

The history is one run of the model, with the channel rules of the exploration. The servers start in the given order,
and every urgent step follows. The initial state is therefore reachable, including the last message of each channel.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import msgspec

from checker.engine import Actor, Column, Model, Move, Property, Row
from checker.engine.semantics import successors
from checker.models.ensemble import columns
from checker.models.ensemble.columns import Kept
from checker.models.ensemble.connection import connection_actor, opening_actor
from checker.models.ensemble.faults import Faults, faults_actor
from checker.models.ensemble.history import History, history_actor, parts_read
from checker.models.ensemble.names import (
    CONNECTIONS,
    FAULTS,
    HISTORY,
    LINKS,
    PLAN,
    VOTES,
    channel_name,
    connection_name,
    server_name,
)
from checker.models.ensemble.rules import pairs, rules
from checker.models.ensemble.setup import Budgets, Grain, Prologue, Setup
from spec.election.channel import Channel, ChannelRules
from spec.quorum import Sid
from spec.server import Server

URGENT = ("deliver", "receive", "resume", "sync", "apply", "decide", "elect")
"""The actions of a settling ensemble, the most urgent first: messages arrive before servers decide."""


def ensemble(name: str, setup: Setup, properties: Iterable[Property] = (), *, keep_votes: bool = False) -> Model:
    """The model of an ensemble with these properties. Raises ValueError if the history is impossible.

    The model records the votes that servers receive if a property reads them, or if `keep_votes` is true.
    """
    wanted = tuple(properties)
    votes = keep_votes or any(read.column == VOTES for prop in wanted for read in prop.reads)
    kept = Kept(votes, parts_read(wanted))
    channel_rules = _channel_rules(setup)
    model = _assemble(name, setup, wanted, kept, channel_rules)
    initial = _after_history(_assemble(name, _before_faults(setup), (), kept, channel_rules), setup)
    late = frozenset(member.sid for member in setup.members if member.late)
    values = {**initial, FAULTS: Faults(setup.budgets, late)}
    begun = tuple(Column(column.name, values.get(column.name, column.initial)) for column in model.columns)
    return Model(name, begun, model.actors, model.rules, wanted)


def _assemble(
    name: str, setup: Setup, properties: tuple[Property, ...], kept: Kept, channel_rules: ChannelRules
) -> Model:
    """The model in which no server runs yet.

    The channel rules are an argument because the history uses those of the run: its setup has no faults, and the
    last message of a channel, which is sent again after a fault of the run, may date from the history.
    """
    cells: list[Column] = []
    actors: list[Actor] = []
    for member in sorted(setup.members, key=lambda member: member.sid):
        server = Server(member.sid, member.file.view, member.durable)
        cells.append(Column(server_name(member.sid), server))
        actors.append(columns.server_actor(member.sid, setup, kept))
    if setup.grain is Grain.FINE:
        for source, destination in pairs(setup):
            cells.append(Column(channel_name(source, destination), Channel()))
            actors.append(columns.channel_actor(source, destination, channel_rules, addressed=setup.addressed))
    late = frozenset(member.sid for member in setup.members if member.late)
    cells += [Column(FAULTS, Faults(setup.budgets, late)), Column(LINKS, frozenset())]
    actors += [faults_actor(), columns.links_actor()]
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


def _after_history(model: Model, setup: Setup) -> dict[str, Any]:
    """The values after the history. Servers outside the history boot at its end, unless late or started by the plan."""
    row = model.initial()
    mentioned = {sid for prologue in setup.prologue for sid in prologue.start}
    waiting = mentioned | setup.started_by_plan
    at_once = [m.sid for m in setup.members if not m.late and m.sid not in waiting]
    for prologue in (*setup.prologue, Prologue(tuple(sorted(at_once)), settle=False)):
        for sid in prologue.start:
            row = _start(model, row, sid)
        if prologue.settle:
            row = _settled(model, row)
    return {column.name: value for column, value in zip(model.columns, row, strict=True)}


def _start(model: Model, row: Row, sid: Sid) -> Row:
    for move, after in successors(model, row):
        if move.action == "start" and move.arguments[0] == sid:
            return after
    raise ValueError(f"server {sid} cannot start here: it runs already, or its own file does not name it")


def _settled(model: Model, row: Row) -> Row:
    """The row without urgent steps. An election by the oracle takes the largest possible membership."""
    while True:
        possible = [step for step in successors(model, row) if step[0].action in URGENT]
        if not possible:
            return row
        _, row = min(possible, key=lambda step: _urgency(step[0]))


def _urgency(move: Move) -> tuple[int, ...]:
    if move.action != "elect":
        return (URGENT.index(move.action),)
    # Among elections of equal size the best vote wins, as it does when every message arrives.
    vote = move.sends[0].operation.vote
    return URGENT.index(move.action), -len(move.arguments[1]), -vote.peer_epoch, -vote.zxid, -vote.leader
