"""Restrictions of a run of an ensemble: an opening of steps in one order, and a network that is faster than timers.

An election among five servers has too many interleavings for an exhaustive search. Where the order of the first steps
is known (one server is stopped, and the others have decided before it returns), an opening takes these steps one by
one, and every order is explored after it:

    planned: n        the operator's next n actions
    settle: [s, ...]  everything that must happen among these servers: losses are noticed, messages arrive, waits
                      end, elections end, disks catch up; messages to and from other servers stay in flight
    arrive: [s, ...]  messages and packets between these servers only, as long as one can be read
    crash, cut, cut_off, disconnect   one fault, from its budget
    write: s          a client writes at server s, from the budget of writes
    restore: zxid     an operator restores the snapshot of that zxid, from the budget of restores

On one machine or in one rack a notification takes less than 1 ms. A server waits 200 ms before it decides
(finalizeWait), and an operator's restart takes longer still. With `network: fast` no such wait ends, and no operator
acts, while a notification is in flight. Without it messages may take any time, and all orders are explored.

Rules of this module: the steps of an opening are ordinary steps of the model, and a fast network only removes steps. A
finding is therefore a run of the whole model, and its trace begins with the opening. The *absence* of a finding holds
for this opening and this network only, and the bounds of the job say so.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from checker.engine import Actor, Column, Model, Move, Outcome, Read, Row, Rule, Send
from checker.engine.semantics import successors
from checker.models.ensemble import Setup
from checker.models.ensemble.actions import ARRIVALS, SETTLING, ServerAction, urgency
from checker.models.ensemble.rules import pairs
from checker.models.ensemble.setup import channel_name
from checker.scenario.plan import check_server
from checker.scenario.schema import OpeningEntry, decode
from checker.scenario.servers import zxid_of
from checker.scenario.yaml_lines import Path, YamlDocument, position
from spec.election.channel import Channel
from spec.quorum import Sid

OPENING = "opening"
LONGEST = 1000  # the limit for the steps of an opening
_PAIRS = {"cut": ServerAction.CUT, "disconnect": ServerAction.DISCONNECT}
"""The faults of two servers."""
Step = tuple[Move, Row]
Choice = Callable[[list[Step]], Step | None]


def with_opening(model: Model, entries: list[Any], setup: Setup, document: YamlDocument) -> tuple[Model, int]:
    """The model with that opening, and the number of its steps. Raises ScenarioError for an impossible one."""
    row, moves = model.initial(), []
    for number, value in enumerate(entries):
        path: Path = (OPENING, position(number))
        for choose in _choices(decode(OpeningEntry, document, value, path), setup, document, path):
            step = choose(list(successors(model, row)))
            if step is None:
                right = "order the steps as they can happen, and give faults their budgets"
                right += " and clients and operators theirs, in workload" if value.keys() & {"write", "restore"} else ""
                raise document.error(path, "no such step is possible here", right)
            moves.append(step[0])
            row = step[1]
        arriving = value.get("arrive")
        among = value.get("settle") if arriving is None else arriving
        for step in _settling(model, row, among, SETTLING if arriving is None else ARRIVALS):
            moves.append(step[0])
            row = step[1]
            if len(moves) > LONGEST:
                raise document.error(path, f"more than {LONGEST} steps", "let fewer servers settle")
    return (_force(model, tuple(moves)) if moves else model), len(moves)


def _choices(entry: OpeningEntry, setup: Setup, document: YamlDocument, path: Path) -> list[Choice]:
    """One choice for each step of an entry other than `settle` and `arrive`, which have none."""
    names = [name for name in entry.__struct_fields__ if getattr(entry, name) is not None]
    if len(names) != 1:
        right = f"write one of {', '.join(entry.__struct_fields__)}"
        raise document.error(path, f"{len(names)} things in one entry", right)
    (name,) = names
    value = getattr(entry, name)
    if name == "planned":
        if not 0 < value <= len(setup.plan):
            problem = f"{value} actions, and the plan has {len(setup.plan)} (a restart is two)"
            raise document.error((*path, name), problem, "write how many of them come next")
        return [_by(lambda move: move.action in setup.planned)] * value
    if name == "restore":
        zxid = zxid_of(document, value, (*path, name))
        return [_by(lambda move: move.action == ServerAction.RESTORE and move.arguments == (zxid,))]
    alone = name in ("crash", "write")
    sids: list[Sid] = [value] if alone else value
    for place, sid in enumerate(sids):
        check_server(document, sid, setup.sids, (*path, name) if alone else (*path, name, position(place)))
    if name in ("settle", "arrive"):
        return []
    if name == "crash":
        return [_by(lambda move: move.action == ServerAction.CRASH and move.arguments == (value,))]
    if name == "write":
        return [_by(lambda move: move.action == ServerAction.CLIENT_WRITE and move.arguments[0] == value)]
    if name in _PAIRS:
        return [_by(lambda move: move.action == _PAIRS[name] and sorted(move.arguments) == sorted(sids))]
    sides = (set(sids), set(setup.sids) - set(sids))
    return [_by(lambda move: move.action == ServerAction.PARTITION and set(move.arguments[0]) in sides)]


def _by(wanted: Callable[[Move], bool]) -> Choice:
    return lambda steps: next((step for step in steps if wanted(step[0])), None)


def _settling(model: Model, row: Row, among: list[Sid] | None, actions: tuple[ServerAction, ...]) -> Iterable[Step]:
    """The steps that must happen among these servers, the most urgent first, until none is left."""
    while among is not None:
        steps = [step for step in successors(model, row) if step[0].action in actions]
        possible = [step for step in steps if _concerns(step[0], set(among))]
        if not possible:
            return
        step = min(possible, key=lambda each: urgency(each[0]))
        yield step
        row = step[1]


def _concerns(move: Move, among: set[Sid]) -> bool:
    """Whether a step of SETTLING involves only these servers; a loss involves the server that notices it."""
    if move.action in ARRIVALS:
        return {move.arguments[0], move.arguments[1]} <= among
    if move.action == ServerAction.ELECT:
        return {move.arguments[0], *move.arguments[1]} <= among
    return move.arguments[0] in among


def _force(model: Model, moves: tuple[Move, ...]) -> Model:
    """The same model, with these as its first moves."""
    at_end = Read(OPENING, lambda taken: True if taken == len(moves) else None)
    actor = Actor(OPENING, (OPENING,), lambda values, _: Outcome((values[0] + 1,)))
    waiting = [replace(rule, reads=(*rule.reads, at_end), moves=_without_last(rule.moves)) for rule in model.rules]
    return Model(
        model.name,
        (*model.columns, Column(OPENING, 0)),
        (*model.actors, actor),
        # Its steps do happen, whichever they are.
        (*waiting, Rule(OPENING, (Read(OPENING),), lambda taken: _next_of(moves, taken), fair=True)),
        model.properties,
    )


def _without_last(moves: Callable[..., Iterable[Move] | None]) -> Callable[..., Iterable[Move] | None]:
    return lambda *arguments: moves(*arguments[:-1])


def _next_of(moves: tuple[Move, ...], taken: int) -> list[Move]:
    if taken == len(moves):
        return []
    move = moves[taken]
    return [Move(move.action, move.arguments, (*move.sends, Send(OPENING, "done")))]


def with_fast_network(model: Model, setup: Setup) -> Model:
    """The model without the steps that wait while a notification is in flight; fine grain only."""
    quiet = tuple(Read(channel_name(a, b), _nothing_in_flight) for a, b in pairs(setup))
    slow = {*setup.planned, *(action for action in ServerAction if action.traits.waits)}
    rules = tuple(rule if slow.isdisjoint(rule.actions) else _waiting(rule, quiet) for rule in model.rules)
    return Model(model.name, model.columns, model.actors, rules, model.properties)


def _nothing_in_flight(channel: Channel) -> bool | None:
    return None if channel.in_flight else True


def _waiting(rule: Rule, quiet: tuple[Read, ...]) -> Rule:
    return replace(rule, reads=(*rule.reads, *quiet), moves=_of_first(rule.moves, len(rule.reads)))


def _of_first(moves: Callable[..., Iterable[Move] | None], count: int) -> Callable[..., Iterable[Move] | None]:
    return lambda *arguments: moves(*arguments[:count])
