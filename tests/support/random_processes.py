"""Random systems of processes with channels, for tests of the reduction.

A system has two or three processes with up to four states each. A message leads a process to another state, sends
further messages, or does neither. Channels are bounded, or bounded and merging, or unbounded. Some systems lose
messages or crash a process, which clears the channels to it and perhaps from it.

Some more systems are written by hand, since no random one needs the condition that they show.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from checker.engine import Actor, Column, Model, Move, Outcome, Property, Read, Rule, Send
from checker.engine.model import Channel

POP, CLEAR, CRASH, JUMP = "pop", "clear", "crash", "jump"
Sent = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class ChannelKind:
    """The capacity of channels, None for no limit, and whether a repeated message merges into the newest one."""

    capacity: int | None
    merges: bool

    def after(self, content: tuple[int, ...], messages: Iterable[int]) -> tuple[int, ...]:
        """The content after messages were sent; a message to a full channel replaces the newest one."""
        for message in messages:
            if self.merges and content[-1:] == (message,):
                continue
            full = self.capacity is not None and len(content) >= self.capacity
            content = (*(content[:-1] if full else content), message)
        return content


def random_system(seed: int) -> Model:
    """The system of a seed; its channels are declared."""
    rng = random.Random(seed)
    names = [str(n) for n in range(rng.choice([2, 3, 3]))]
    pairs = [(a, b) for a in names for b in names if a != b]
    states, messages = rng.choice([2, 3, 4]), rng.choice([1, 2, 3])
    bounded = rng.random() < 2 / 3
    kind = ChannelKind(rng.choice([2, 2, 3]) if bounded else None, bounded and rng.random() < 0.4)
    crashes, loses = rng.random() < 1 / 3, rng.random() < 0.2
    arrivals, starts = _behaviour(rng, names, states, messages, bounded=bounded)
    columns = [Column(name, 0) for name in names]
    columns += [
        Column(f"{a}>{b}", tuple(rng.randrange(messages) for _ in range(rng.choice([0, 0, 1])))) for a, b in pairs
    ]
    actors = [_process(name, arrivals, starts) for name in names] + [_channel(f"{a}>{b}", kind) for a, b in pairs]
    rules = [_start(name, starts) for name in names] + [_delivery(a, b, loses=loses) for a, b in pairs]
    if crashes:
        columns.append(Column("crashes", 1))
        actors.append(Actor("crashes", ("crashes",), lambda v, _: Outcome((v[0] - 1,)) if v[0] else None))
        rules += [_crash(name, pairs, both_ways=rng.random() < 0.5) for name in names]
    appends = None if bounded else lambda operation: operation not in (POP, CLEAR)
    channels = tuple(Channel(f"{a}>{b}", a, b, appends) for a, b in pairs)
    return Model(f"system {seed}", tuple(columns), tuple(actors), tuple(rules), (), channels)


def ordered_system(seed: int) -> Model:
    """A system with unbounded channels, for stubborn sets.

    Some messages cannot arrive in some states, and some have the effect of a spontaneous move. A property reads two
    processes together. Some systems lose messages, and some crash a process, which clears the channels to it.
    """
    rng = random.Random(seed)
    names = [str(n) for n in range(rng.choice([2, 3, 3]))]
    pairs = [(a, b) for a in names for b in names if a != b]
    states, messages = rng.choice([2, 3, 4]), rng.choice([1, 2, 3])
    arrivals, starts = _behaviour(rng, names, states, messages, bounded=False)
    for key in arrivals:
        like = starts.get(key[:2])
        chance = rng.random()
        if chance < 0.15:
            arrivals[key] = None
        elif chance < 0.4 and like is not None:
            arrivals[key] = like
    columns = [Column(name, 0) for name in names]
    columns += [
        Column(f"{a}>{b}", tuple(rng.randrange(messages) for _ in range(rng.choice([0, 0, 1, 2])))) for a, b in pairs
    ]
    kind, loses = ChannelKind(None, merges=False), rng.random() < 0.2
    actors = [_process(name, arrivals, starts) for name in names] + [_channel(f"{a}>{b}", kind) for a, b in pairs]
    rules = [_start(name, starts) for name in names] + [_delivery(a, b, loses=loses) for a, b in pairs]
    if rng.random() < 0.25:
        columns.append(Column("crashes", 1))
        actors.append(Actor("crashes", ("crashes",), lambda v, _: Outcome((v[0] - 1,)) if v[0] else None))
        rules += [_crash(name, pairs, both_ways=False) for name in names]
    seen = rng.randrange(1, states)
    reads = tuple(Read(name, lambda state: state >= seen) for name in names[:2])
    together = Property("Together", reads, lambda *_: None)
    return Model(f"ordered system {seed}", tuple(columns), tuple(actors), tuple(rules), (together,), _appending(pairs))


def bounded_system(seed: int) -> Model:
    """A system with bounded channels, and sometimes with a rule that reads two processes, for stubborn sets.

    A channel merges a repeated message, or replaces its newest one when it is full. The rule sends an operation to
    a process, which some states refuse; it may never have a possible move. A property reads two processes together.
    """
    rng = random.Random(seed)
    names = [str(n) for n in range(rng.choice([2, 3, 3]))]
    pairs = [(a, b) for a in names for b in names if a != b]
    states, messages = rng.choice([2, 3, 4]), rng.choice([1, 2, 3])
    arrivals, starts = _behaviour(rng, names, states, messages, bounded=rng.random() < 0.3)
    for key in arrivals:
        like, chance = starts.get(key[:2]), rng.random()
        if chance < 0.15:
            arrivals[key] = None
        elif chance < 0.4 and like is not None:
            arrivals[key] = like
    kind, loses = ChannelKind(rng.choice([2, 2, 3]), merges=rng.random() < 0.6), rng.random() < 0.15
    columns = [Column(name, 0) for name in names]
    columns += [
        Column(f"{a}>{b}", kind.after((), [rng.randrange(messages) for _ in range(rng.choice([0, 0, 1, 2]))]))
        for a, b in pairs
    ]
    jumps: Starts = {}
    rules = [_start(name, starts) for name in names] + [_delivery(a, b, loses=loses) for a, b in pairs]
    if rng.random() < 0.5:
        first, second, states_of_both = *rng.sample(names, 2), (rng.randrange(states), rng.randrange(states))
        jumps = {(first, state): (rng.randrange(states), ()) for state in range(states) if rng.random() < 0.4}
        rules.append(_jump(first, second, *states_of_both))
    actors = [_process(name, arrivals, starts, jumps) for name in names]
    actors += [_channel(f"{a}>{b}", kind) for a, b in pairs]
    seen = rng.randrange(1, states)
    reads = tuple(Read(name, lambda state: state >= seen) for name in names[:2])
    together = Property("Together", reads, lambda *_: None)
    channels = tuple(_bounded(a, b) for a, b in pairs)
    return Model(f"bounded system {seed}", tuple(columns), tuple(actors), tuple(rules), (together,), channels)


def _bounded(source: str, target: str) -> Channel:
    def carries(operation: Any) -> tuple[Send, ...] | None:
        return tuple(Send(target, (source, message)) for message in operation) if isinstance(operation, tuple) else None

    return Channel(f"{source}>{target}", source, target, carries=carries)


def _jump(first: str, second: str, state: int, other: int) -> Rule:
    """A rule over two processes: in two states of theirs, the first one may jump."""
    jump = Move("jump", (first,), (Send(first, JUMP),))
    reads = (Read(first), Read(second, lambda there: there == other or None))
    return Rule("jump", reads, lambda here, _: [jump] if here >= state else [])


def _appending(pairs: Iterable[tuple[str, str]]) -> tuple[Channel, ...]:
    return tuple(Channel(f"{a}>{b}", a, b, lambda operation: operation not in (POP, CLEAR)) for a, b in pairs)


Arrivals = dict[tuple[str, int, str, int], tuple[int, Sent] | None]
Starts = dict[tuple[str, int], tuple[int, Sent]]


def _behaviour(
    rng: random.Random, names: list[str], states: int, messages: int, *, bounded: bool
) -> tuple[Arrivals, Starts]:
    """The reactions to messages, and the spontaneous moves. Unbounded channels need processes that come to an end."""
    arrivals: Arrivals = {}
    starts: Starts = {}
    for name in names:
        others = [other for other in names if other != name]

        def sent(count: int, others: list[str] = others) -> Sent:
            return tuple((rng.choice(others), rng.randrange(messages)) for _ in range(count))

        inert = {state for state in range(states) if rng.random() < 0.5}
        for state in range(states):
            for source in others:
                for message in range(messages):
                    reaction: tuple[int, Sent]
                    if state in inert and rng.random() < 0.8:
                        answers = bounded and rng.random() < 0.3
                        reaction = state, ((source, rng.randrange(messages)),) if answers else ()
                    else:
                        after = rng.randrange(state, states) if rng.random() < 0.8 else rng.randrange(states)
                        reaction = after, sent(rng.choice([0, 0, 1, 1, 2])) if bounded or after > state else ()
                    arrivals[name, state, source, message] = reaction
            if state < states - 1 and rng.random() < 0.5:
                starts[name, state] = rng.randrange(state + 1, states), sent(rng.choice([0, 1, 2]))
    return arrivals, starts


def _process(name: str, arrivals: Arrivals, starts: Starts, jumps: Starts | None = None) -> Actor:
    def step(values: tuple[Any, ...], operation: Any) -> Outcome | None:
        state = values[0]
        if operation == CRASH:
            return Outcome((0,)) if state else None
        if operation in ("start", JUMP):
            reaction = (starts if operation == "start" else jumps or {}).get((name, state))
        else:
            reaction = arrivals.get((name, state, *operation))
        if reaction is None:
            return None
        batches: dict[str, tuple[int, ...]] = {}
        for target, message in reaction[1]:
            batches[target] = (*batches.get(target, ()), message)
        return Outcome((reaction[0],), tuple(Send(f"{name}>{target}", batch) for target, batch in batches.items()))

    return Actor(name, (name,), step)


def _channel(name: str, kind: ChannelKind) -> Actor:
    def step(values: tuple[Any, ...], operation: Any) -> Outcome | None:
        content = values[0]
        if operation == POP:
            return Outcome((content[1:],)) if content else None
        return Outcome(((),) if operation == CLEAR else (kind.after(content, operation),))

    return Actor(name, (name,), step)


def cleared_by_its_receiver() -> Model:
    """Process 0 sends a message to 1, which answers, and may then clear the channel to itself.

    Only an answer after the clearing arrives in the later state.
    """
    arrivals: Arrivals = {("1", 0, "0", 0): (0, (("0", 0),)), ("0", 1, "1", 0): (3, ()), ("0", 2, "1", 0): (4, ())}
    return _cleared("0", 1, "1>0", arrivals)


def cleared_by_its_sender() -> Model:
    """Process 0 sends a message to 1, which answers, unless 0 clears the channel first."""
    arrivals: Arrivals = {("1", 0, "0", 0): (0, (("0", 0),)), ("0", 1, "1", 0): (3, ()), ("0", 2, "1", 0): (4, ())}
    return _cleared("0", 1, "0>1", arrivals)


def cleared_by_another() -> Model:
    """Process 0 sends a message to 1, which answers, unless process 2 clears the channel first."""
    arrivals: Arrivals = {("1", 0, "0", 0): (0, (("0", 0),)), ("0", 1, "1", 0): (2, ())}
    return _cleared("2", 0, "0>1", arrivals)


def turns_back() -> Model:
    """Process 0 moves between two states for ever, and 1 moves once: whoever follows 0 alone never sees it."""
    return _by_hand("0 turns back", {}, {("0", 0): (1, ()), ("0", 1): (0, ()), ("1", 0): (1, ())})


def answers_for_ever() -> Model:
    """Processes 0 and 1 send one message to and fro without any other effect, and 2 moves once."""
    arrivals: Arrivals = {("0", 0, "1", 0): (0, (("1", 0),)), ("1", 0, "0", 0): (0, (("0", 0),))}
    return _by_hand("0 and 1 answer for ever", arrivals, {("2", 0): (1, ())}, {("0", "1"): (0,)})


def becomes_important() -> Model:
    """Process 1 sends a message to 0 that has no effect at first, and another one after a move of 0."""
    arrivals: Arrivals = {("0", 0, "1", 0): (0, ()), ("0", 1, "1", 0): (2, ())}
    return _by_hand("a message becomes important", arrivals, {("0", 0): (1, ()), ("1", 0): (1, (("0", 0),))})


def sends_two() -> Model:
    """Process 1 sends a message to 0 that may arrive at once, and then one that never arrives.

    Process 0 moves first, as it may send more; 2 never receives that.
    """
    arrivals: Arrivals = {("0", 0, "1", 1): (2, ())}
    starts: Starts = {("0", 0): (1, tuple(("2", message) for message in range(3)))}
    starts |= {("1", 0): (1, (("0", 1),)), ("1", 1): (2, (("0", 0),))}
    return _by_hand("1 sends two messages", arrivals, starts)


def toggles_for_ever() -> Model:
    """Process 1 answers each message of 0 by two; the first one makes 0 move to and fro, the second one is answered."""
    arrivals: Arrivals = {
        ("1", 0, "0", 0): (0, (("0", 0), ("0", 1))),
        **{("0", state, "1", 0): (1 - state, ()) for state in (0, 1)},
        **{("0", state, "1", 1): (state, (("1", 0),)) for state in (0, 1)},
    }
    return _by_hand("0 moves to and fro", arrivals, {("2", 0): (1, ())}, {("1", "0"): (0, 1)})


def answers_in_any_order() -> Model:
    """Process 0 answers a message of 1 to process 2, and may send 2 something else before or after that.

    Process 1 moves first, as it may send as much; 2 never receives what it sends.
    """
    arrivals: Arrivals = {("0", state, "1", 0): (state, (("2", 0),)) for state in (0, 1)}
    arrivals |= {("2", 0, "0", 0): (2, ()), ("2", 1, "0", 0): (3, ())}
    arrivals |= {("2", 0, "0", 1): (1, ()), ("2", 2, "0", 1): (4, ())}
    starts: Starts = {("0", 0): (1, (("2", 1),)), ("1", 0): (1, (("2", 0), ("2", 1)))}
    return _by_hand("0 answers in any order", arrivals, starts, {("1", "0"): (0,)})


def jumps_before_a_delivery() -> Model:
    """Process 0 may jump, by a rule that also reads 1, before or after a delivery, with different results."""
    arrivals: Arrivals = {("0", 0, "2", 0): (1, ()), ("0", 2, "2", 0): (3, ())}
    jumps: Starts = {("0", 0): (2, ()), ("0", 1): (4, ())}
    reads = Read("0", lambda state: state < 2 or None), Read("1", lambda state: state == 0 or None)
    jump = Rule("jump", reads, lambda *_: [Move("jump", ("0",), (Send("0", JUMP),))])
    return _by_hand("0 jumps before a delivery", arrivals, {}, {("2", "0"): (0,)}, jumps, jump)


def jumps_in_between() -> Model:
    """Processes 0 and 1 move once each, and 2 may jump when only 0 has moved. Otherwise 1 would move first."""
    reads = Read("0", lambda state: state == 1 or None), Read("1", lambda state: state == 0 or None)
    jump = Rule("jump", reads, lambda *_: [Move("jump", ("2",), (Send("2", JUMP),))])
    starts: Starts = {("0", 0): (1, ()), ("1", 0): (1, ())}
    return _by_hand("2 jumps in between", {}, starts, jumps={("2", 0): (1, ())}, rule=jump)


def merges_with_the_newest() -> Model:
    """Process 0 sends 1 a message like the one that is on its way: they merge, unless the first has arrived."""
    arrivals: Arrivals = {("1", state, "0", 0): (state + 1, ()) for state in (0, 1)}
    starts: Starts = {("0", 0): (1, (("1", 0),))}
    columns = (Column("0", 0), Column("1", 0), Column("0>1", (0,)))
    actors = [*(_process(name, arrivals, starts) for name in "01"), _channel("0>1", ChannelKind(2, merges=True))]
    rules = (_start("0", starts), _delivery("0", "1", loses=False))
    return Model("0 sends the same again", columns, tuple(actors), rules, (), (_bounded("0", "1"),))


def asks_for_more() -> Model:
    """Process 1 gets a message, asks 0 for another one, and refuses the first one from then on.

    Process 0 may send the first one once more. It must merge, for otherwise it is in the way of the other one.
    """
    arrivals: Arrivals = {("1", 0, "0", 0): (1, (("0", 0),)), ("1", 1, "0", 1): (2, ())}
    arrivals[("0", 1, "1", 0)] = 2, (("1", 1),)
    starts: Starts = {("0", 0): (1, (("1", 0),))}
    columns = (Column("0", 0), Column("1", 0), Column("0>1", (0,)), Column("1>0", ()))
    actors = [_process(name, arrivals, starts) for name in "01"]
    actors += [_channel(name, ChannelKind(2, merges=True)) for name in ("0>1", "1>0")]
    rules = (_start("0", starts), _delivery("0", "1", loses=False), _delivery("1", "0", loses=False))
    channels = (_bounded("0", "1"), _bounded("1", "0"))
    return Model("1 asks for more", columns, tuple(actors), rules, (), channels)


def replaces_the_oldest() -> Model:
    """Process 0 replaces a message that 1 cannot receive yet by one that it can, against what the channel declares."""
    starts: Starts = {("0", 0): (1, (("1", 1),)), ("1", 0): (1, ())}
    columns = (Column("0", 0), Column("1", 0), Column("0>1", (0,)))
    actors = [*(_process(name, {("1", 0, "0", 1): (2, ())}, starts) for name in "01")]
    actors += [_channel("0>1", ChannelKind(1, merges=False))]
    rules = (_start("0", starts), _start("1", starts), _delivery("0", "1", loses=False))
    return Model("0 replaces the oldest message", columns, tuple(actors), rules, (), (_bounded("0", "1"),))


def _by_hand(
    name: str,
    arrivals: Arrivals,
    starts: Starts,
    waiting: dict[tuple[str, str], tuple[int, ...]] | None = None,
    jumps: Starts | None = None,
    rule: Rule | None = None,
) -> Model:
    """Three processes, the channels between all of them, and perhaps one more rule; other arrivals are impossible."""
    names = ("0", "1", "2")
    pairs = [(a, b) for a in names for b in names if a != b]
    columns = [
        *(Column(each, 0) for each in names),
        *(Column(f"{a}>{b}", (waiting or {}).get((a, b), ())) for a, b in pairs),
    ]
    actors = [
        *(_process(each, arrivals, starts, jumps) for each in names),
        *(_channel(f"{a}>{b}", ChannelKind(None, merges=False)) for a, b in pairs),
    ]
    rules = [*(_start(each, starts) for each in names), *(_delivery(a, b, loses=False) for a, b in pairs)]
    rules += [] if rule is None else [rule]
    return Model(name, tuple(columns), tuple(actors), tuple(rules), (), _appending(pairs))


def _cleared(clearing: str, when: int, channel: str, arrivals: Arrivals) -> Model:
    """Processes 0 and 1, a message that 0 sends first, and a process that clears a channel once, in a state."""
    names, pairs = ("0", "1", "2"), (("0", "1"), ("1", "0"))
    starts: Starts = {("0", 0): (1, (("1", 0),))}

    def process(name: str) -> Actor:
        other = _process(name, arrivals, starts)

        def step(values: tuple[Any, ...], operation: Any) -> Outcome | None:
            if operation == "clear":
                return Outcome((values[0] + 1,), (Send(channel, CLEAR),)) if values[0] == when else None
            return other.step(values, operation)

        return Actor(name, (name,), step)

    clear = Move("clear", (clearing,), (Send(clearing, "clear"),))
    columns = [*(Column(name, 0) for name in names), *(Column(f"{a}>{b}", ()) for a, b in pairs)]
    actors = [*map(process, names), *(_channel(f"{a}>{b}", ChannelKind(None, merges=False)) for a, b in pairs)]
    rules = [
        _start("0", starts),
        Rule("clear", (Read(clearing),), lambda state: [clear] if state == when else []),
        *(_delivery(a, b, loses=False) for a, b in pairs),
    ]
    channels = _appending(pairs)
    return Model(f"{channel} is cleared by {clearing}", tuple(columns), tuple(actors), tuple(rules), (), channels)


def _start(name: str, starts: Starts) -> Rule:
    def moves(state: int) -> list[Move]:
        return [Move("start", (name,), (Send(name, "start"),))] if (name, state) in starts else []

    return Rule(f"start {name}", (Read(name),), moves)


def _delivery(source: str, target: str, *, loses: bool) -> Rule:
    name = f"{source}>{target}"

    def moves(content: tuple[int, ...]) -> list[Move]:
        if not content:
            return []
        delivery = Move("deliver", (source, target), (Send(name, POP), Send(target, (source, content[0]))))
        return [delivery, *([Move("lose", (source, target), (Send(name, POP),))] if loses else [])]

    return Rule(f"deliver {name}", (Read(name),), moves)


def _crash(name: str, pairs: list[tuple[str, str]], *, both_ways: bool) -> Rule:
    cleared = [f"{a}>{b}" for a, b in pairs if b == name or (both_ways and a == name)]
    sends = (Send("crashes", "spend"), Send(name, CRASH), *(Send(channel, CLEAR) for channel in cleared))
    reads = (Read("crashes", lambda left: left or None), Read(name, lambda state: state or None))
    return Rule(f"crash {name}", reads, lambda *_: [Move("crash", (name,), sends)])
