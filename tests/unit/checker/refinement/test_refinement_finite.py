"""The actions in one finite state: Python's evaluation of each condition and effect is that of z3.

The refinement evaluates the functions of the proof with truth values, and keeps the result in records of its own
(`Reign`, `Disk`). z3 gets the same random state as facts about the symbols of the proof, and evaluates the same action.
The states need not be reachable.
"""

import itertools
import random
from typing import Any

import pytest
import z3
from msgspec.structs import replace

from checker.refinement.abstract_steps import NO_REIGN, Disk, Reign, ReignHistory, ReignKey
from checker.refinement.judgement import FiniteState
from checker.symbolic.zab.actions import ACTIONS
from checker.symbolic.zab.system import AbstractZab, Universe, ZabState
from spec.quorum import majority_view
from spec.txn import Txn, make_zxid

SIDS = (1, 2, 3)
KEYS: tuple[ReignKey, ...] = ((1, 1), (2, 2), (3, 1))
REIGNS = (NO_REIGN, *KEYS)
TXNS = tuple(Txn(make_zxid(epoch, 1), f"w{epoch}") for epoch, _ in KEYS)
ZXIDS = (0, *(make_zxid(epoch, counter) for epoch, _ in KEYS for counter in (0, 1)))
QUORUMS = tuple(frozenset(each) for size in (1, 2) for each in itertools.combinations(SIDS, size))
VIEWS = (majority_view([1, 2, 3]), majority_view([1, 2]))
STATES = 40


def some(chance: random.Random, elements: Any) -> Any:
    """Return a random subset."""
    return frozenset(each for each in elements if chance.random() < 0.5)


def reign_of(chance: random.Random, key: ReignKey) -> Reign:
    """Return a reign with random values."""
    return Reign(
        key,
        chance.choice(VIEWS),
        chance.choice(REIGNS)[0],
        tuple(sorted(some(chance, TXNS), key=lambda t: t.zxid)),
        chance.choice(ZXIDS),
        tuple(sorted(some(chance, TXNS), key=lambda t: t.zxid)),
        chance.choice(ZXIDS),
        established=chance.random() < 0.7,
        served=chance.random() < 0.5,
        promised=some(chance, SIDS),
        entered=some(chance, SIDS),
        acked=some(chance, itertools.product(SIDS, TXNS)),
        committed=frozenset({(chance.choice(TXNS), chance.choice(QUORUMS))}),
        learners=frozenset(SIDS),
    )


def random_state(chance: random.Random, *, unbegun: bool) -> FiniteState:
    """Return a state of server 1, in which every server and transaction occurs; (3, 1) may not have begun."""
    disk = Disk(chance.choice((0, 1, 2, 3)), chance.choice((0, 1, 2)), some_sorted(chance), chance.choice(ZXIDS))
    known = tuple(reign_of(chance, key) for key in KEYS)
    known = (replace(known[0], initial=TXNS), *known[1:])
    if unbegun:
        known = (*known[:2], Reign(KEYS[2], VIEWS[0], 0, (), 0, learners=frozenset(SIDS)))
    state = FiniteState(1, disk, ReignHistory(known))
    state.source = chance.choice(REIGNS)
    state.unbegun = KEYS[2] if unbegun else NO_REIGN
    return state


def some_sorted(chance: random.Random) -> tuple[Txn, ...]:
    """Return a random log."""
    return tuple(sorted(some(chance, TXNS), key=lambda t: t.zxid))


class Symbols:
    """A state as facts about the symbols of the proof, over enumerations of z3."""

    def __init__(self, state: FiniteState) -> None:
        sizes = {"node": len(SIDS) + 1, "reign": len(REIGNS), "txn": len(TXNS), "quorum": len(QUORUMS)}
        universe = Universe(sizes)
        elements = universe.elements
        self.node = dict(zip((0, *SIDS), elements["node"], strict=True))
        self.reign = dict(zip(REIGNS, elements["reign"], strict=True))
        self.txn = dict(zip(TXNS, elements["txn"], strict=True))
        self.quorum = dict(zip(QUORUMS, elements["quorum"], strict=True))
        self.z, self.solver = AbstractZab(universe), z3.Solver()
        self.s: ZabState = self.z.state()
        self.solver.add(*self._rigid(state), *self._disk(state))
        for reign in state.reigns.known:
            self.solver.add(*self._of_reign(reign, begun=reign.key != state.unbegun))
        self.solver.add(z3.Not(self.s.begun(self.reign[NO_REIGN])))
        assert self.solver.check() == z3.sat
        self.model = self.solver.model()

    def term(self, value: Any) -> Any:
        """Return the element for an argument of an action."""
        for table in (self.txn, self.quorum, self.reign):
            if isinstance(value, Txn | frozenset | tuple) and value in table:
                return table[value]
        return self.node[value]

    def value(self, term: Any) -> Any:
        """Return the value of a term in this state."""
        found = self.model.eval(term, model_completion=True) if z3.is_expr(term) else term
        return z3.is_true(found) if z3.is_bool(found) else found.as_long() if z3.is_int(found) else found

    def _rigid(self, state: FiniteState) -> list[Any]:
        z = self.z
        facts = [z.zero == self.reign[NO_REIGN]]
        for key, reign in self.reign.items():
            facts += [z.epoch(reign) == key[0], z.server(reign) == self.node[key[1]]]
            known = state.reigns.find(key)
            for q, quorum in self.quorum.items():
                may = known is not None and known.view.contains_quorum(q)
                facts += [z.commits(reign, quorum) == may, z.establishes(reign, quorum) == may]
        for txn, term in self.txn.items():
            own = next(key for key in KEYS if make_zxid(key[0], 1) == txn.zxid)
            facts += [z.zxid(term) == txn.zxid, z.origin(term) == self.reign[own]]
        members = itertools.product(self.node.items(), self.quorum.items())
        return [*facts, *(z.member(node, quorum) == (sid in q) for (sid, node), (q, quorum) in members)]

    def _disk(self, state: FiniteState) -> list[Any]:
        s, own, disk = self.s, self.node[state.sid], state.disk
        return [
            s.accepted(own) == disk.accepted,
            s.current(own) == self.reign[state.current],
            s.last(own) == disk.last,
            s.source(own) == self.reign[state.source],
            *(s.log(own, term) == (txn in disk.txns) for txn, term in self.txn.items()),
        ]

    def _of_reign(self, reign: Reign, *, begun: bool) -> list[Any]:
        s, r = self.s, self.reign[reign.key]
        began = next(key for key in REIGNS if key[0] == reign.began_in)
        facts = [
            s.begun(r) == begun,
            s.established(r) == reign.established,
            s.initial_last(r) == reign.initial_last,
            s.history_last(r) == reign.history_last,
            s.began_in(r) == self.reign[began],
        ]
        for txn, t in self.txn.items():
            facts += [s.initial(r, t) == (txn in reign.initial), s.history(r, t) == (txn in reign.history)]
            facts += [s.acked(self.node[sid], r, t) == ((sid, txn) in reign.acked) for sid in SIDS]
            facts += [s.committed(r, t, q) == ((txn, each) in reign.committed) for each, q in self.quorum.items()]
        for sid in SIDS:
            facts += [s.promised(self.node[sid], r) == (sid in reign.promised)]
            facts += [s.entered(self.node[sid], r) == (sid in reign.entered)]
        return [*facts, *(s.served(r, q) == reign.served for q in self.quorum.values())]


def arguments(chance: random.Random, name: str) -> tuple[Any, ...]:
    """Return random arguments of an action; the acting server is 1 where the action changes a disk."""
    if name == "begin":
        return (KEYS[2],)
    choices = {"node": (1,), "reign": KEYS, "txn": TXNS, "quorum": QUORUMS, "int": ZXIDS}
    epochs = {**choices, "int": (0, 1, 2, 3)} if name == "accept" else choices
    nodes = {**epochs, "node": SIDS} if name == "void_acks" else epochs
    return tuple(chance.choice(nodes[sort]) for sort in ACTIONS[name].parameters.values())


@pytest.mark.parametrize("name", ACTIONS)
def test_an_action_has_the_conditions_and_the_successor_that_z3_computes(name: str) -> None:
    chance = random.Random(name)
    verdicts = set()
    for number in range(STATES):
        state = random_state(chance, unbegun=name == "begin" and number % 2 == 0)
        symbols, given = Symbols(state), arguments(chance, name)
        sorts = ACTIONS[name].parameters.values()
        terms = (each if sort == "int" else symbols.term(each) for each, sort in zip(given, sorts, strict=True))
        step = ACTIONS[name].step(symbols.z, symbols.s, *terms)
        expected = {condition: symbols.value(holds) for condition, holds in step.conditions.items()}
        state.act(name, *given)

        assert {condition for _, condition in state.broken} == {each for each, holds in expected.items() if not holds}
        assert after_of(state) == after_by_z3(symbols, step.after, state)
        verdicts |= set(expected.values())
    assert verdicts == {True, False}


def after_of(state: FiniteState) -> dict[str, Any]:
    """Return the successor that the refinement keeps."""
    disk = state.disk
    values: dict[str, Any] = {"disk": (disk.accepted, disk.current, set(disk.txns), disk.last, state.source)}
    for r in state.reigns.known:
        of_logs = (r.began_in, set(r.initial), r.initial_last, set(r.history), r.history_last)
        values[str(r.key)] = (*of_logs, r.established, r.promised, r.entered, r.acked, r.served, r.committed)
    return values


def after_by_z3(symbols: Symbols, s: ZabState, state: FiniteState) -> dict[str, Any]:
    """Return the successor by z3, in the same form."""
    value, own = symbols.value, symbols.node[state.sid]
    key_of = {str(term): key for key, term in symbols.reign.items()}

    def txns(relation: Any, of: Any) -> set[Txn]:
        return {txn for txn, term in symbols.txn.items() if value(relation(of, term))}

    def servers(relation: Any, r: Any) -> frozenset[int]:
        return frozenset(sid for sid in SIDS if value(relation(symbols.node[sid], r)))

    current, source = (key_of[str(value(each(own)))] for each in (s.current, s.source))
    found: dict[str, Any] = {"disk": (value(s.accepted(own)), current[0], txns(s.log, own), value(s.last(own)), source)}
    for known in state.reigns.known:
        r = symbols.reign[known.key]
        acked = {(sid, t) for sid in SIDS for t in TXNS if value(s.acked(symbols.node[sid], r, symbols.txn[t]))}
        committed = {(t, q) for t in TXNS for q in QUORUMS if value(s.committed(r, symbols.txn[t], symbols.quorum[q]))}
        of_logs = (key_of[str(value(s.began_in(r)))][0], txns(s.initial, r), value(s.initial_last(r)))
        history = (txns(s.history, r), value(s.history_last(r)), value(s.established(r)))
        served = any(value(s.served(r, q)) for q in symbols.quorum.values())
        statements = (servers(s.promised, r), servers(s.entered, r), acked, served, committed)
        found[str(known.key)] = (*of_logs, *history, *statements)
    return found
