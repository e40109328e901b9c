"""Finds two disjoint quorums, one of each of two views, or shows that no two are.

This question decides the safety of a configuration change. Servers that still use the old file and servers that use the
new one are safe together iff every quorum of the one meets every quorum of the other.

Rules this module keeps:

- The search is exhaustive. Servers that are in the same group of each view, with the same weights, are of one kind:
  only their number in each quorum matters. The search decides about one kind after the other. Of all decisions that
  leave the same question to the later kinds, it keeps the best.
- A majority is one group in which each voter weighs 1.
- A search with more than `MOST_STATES` such questions ends undecided. Two views of 255 servers have some hundreds.
- The witnesses are checked with `View.contains_quorum` before they are returned.

Source: the definitions in `spec.quorum`. The tests compare the answers with those of z3 and of enumeration.

The theorems about roll-outs speak of any stages. Their premise on quorums and roles is decided here, exactly, for the
views and the running servers of one roll-out (`disjoint_stages`). Not decided here: whether the operator keeps the rule
(conditions a and b of `checker.symbolic.zab.rollout`), and whether disks keep the data written to them. So an answer of
None is not yet a proof that the roll-out is safe.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import inf
from typing import NamedTuple, TypeAlias

import msgspec

from checker.command import CommandError, ExitCode
from spec.quorum import Majority, Sid, View
from spec.quorum.systems import java_half

MOST_STATES = 200_000


class DisjointQuorums(msgspec.Struct, frozen=True):
    """A quorum of view a and a quorum of view b that share no server."""

    a: frozenset[Sid]
    b: frozenset[Sid]

    @property
    def size(self) -> int:
        """The number of servers in both quorums together."""
        return len(self.a) + len(self.b)


class UndecidedError(CommandError):
    """The search was given up, or its answer failed the check."""

    exit_code = ExitCode.INCOMPLETE


class _Seat(NamedTuple):
    """The group of a server in a view, and its weight there. The group -1 is that of servers without a vote."""

    group: int = -1
    weight: int = 0


WON, LOST = inf, -inf
_Side: TypeAlias = tuple[float | int | None, ...] | None
"""A quorum in the making: the weight of its members in each group, None without members, `WON` or `LOST`.

The whole is None once it has won enough groups.
"""
_State: TypeAlias = tuple[_Side, _Side]


class _Choice(NamedTuple):
    """The best way to a state: its cost, the state before, and the number of servers that join each quorum."""

    cost: int
    before: _State
    joined: tuple[int, int]


class _Rule:
    """The quorums of a view: in more than `exceeded` of the groups, more than `halves` of the weight."""

    def __init__(self, view: View, running: frozenset[Sid] | None) -> None:
        quorums = view.quorums
        groups: tuple[tuple[tuple[Sid, ...], int], ...]
        if isinstance(quorums, Majority):
            groups, self.exceeded = ((tuple(quorums.members), len(quorums.members)),), 0
        else:
            groups, self.exceeded = quorums.totals(), quorums.groups_to_exceed()
        self.halves = [java_half(total) for _, total in groups]
        self.places = {
            sid: _Seat(group, quorums.weight(sid))
            for group, (servers, _) in enumerate(groups)
            for sid in sorted(view.voters.intersection(servers))
            if running is None or sid in running
        }

    def settled(self, side: _Side, potential: Mapping[int, int]) -> Iterator[_Side]:
        """Yield the quorum with every group decided that later servers cannot change; nothing if it cannot be won.

        `potential` is the weight that later servers can add, for each group that has any.
        """
        if side is None or sum(value == WON for value in side) > self.exceeded:
            yield None
            return
        values = tuple(
            LOST if value != WON and not self._is_open(group, value or 0, potential) else value
            for group, value in enumerate(side)
        )
        if sum(value != LOST for value in values) > self.exceeded:
            yield values

    def _is_open(self, group: int, weight: float, potential: Mapping[int, int]) -> bool:
        return group in potential and weight + potential[group] > self.halves[group]

    def joined(self, side: _Side, place: _Seat, most: int) -> Iterator[tuple[int, _Side]]:
        """Yield each useful number of servers from one place that join, and the quorum with them."""
        yield 0, side
        group, weight = place
        value = LOST if side is None or group < 0 else side[group]
        if side is None or value in (WON, LOST):
            return
        # A member whose weight is not positive is useful only as the first one, in a group with a negative total.
        for count in range(1, (most if weight > 0 else min(most, int(value is None))) + 1):
            total = (value or 0) + count * weight
            is_won = total > self.halves[group]
            yield count, (*side[:group], WON if is_won else total, *side[group + 1 :])
            if is_won:
                return


class _Options(dict[_Side, list[tuple[int, _Side]]]):
    """The choices for servers of one kind: the number that joins a quorum in the making, and the quorum then."""

    def __init__(self, rule: _Rule, place: _Seat, most: int, potential: Mapping[int, int]) -> None:
        super().__init__()
        self._rule, self._place, self._most, self._potential = rule, place, most, potential

    def __missing__(self, side: _Side) -> list[tuple[int, _Side]]:
        self[side] = [
            (count, settled)
            for count, joined in self._rule.joined(side, self._place, self._most)
            for settled in self._rule.settled(joined, self._potential)
        ]
        return self[side]


@lru_cache(maxsize=4096)
def disjoint_quorums(a: View, b: View, running: frozenset[Sid] | None = None) -> DisjointQuorums | None:
    """The smallest pair of disjoint quorums; None means that every two quorums meet.

    With `running`, only quorums all of whose servers run are considered.
    Smallest means fewest servers together. Of several smallest pairs, the one whose quorum of `a` has the lowest ids is
    taken, so the answer is the same in every run. Raises UndecidedError if the search is given up.
    """
    rules = _Rule(a, running), _Rule(b, running)
    kinds = _kinds(rules)
    costs = _Costs(rules)
    states: dict[_State, _Choice] = {((None,) * len(rules[0].halves), (None,) * len(rules[1].halves)): _START}
    layers = []
    for position, (places, servers) in enumerate(kinds):
        options = [
            _Options(rules[which], places[which], len(servers), _potential(kinds[position + 1 :], which))
            for which in (0, 1)
        ]
        cost_of = costs.of(servers)
        layer: dict[_State, _Choice] = {}
        for state, choice in states.items():
            for in_a, left in options[0][state[0]]:
                for in_b, right in options[1][state[1]]:
                    if in_a + in_b <= len(servers):
                        cost = choice.cost + cost_of(in_a, in_b)
                        if (known := layer.get((left, right))) is None or cost < known.cost:
                            layer[left, right] = _Choice(cost, state, (in_a, in_b))
            if len(layer) > MOST_STATES:
                raise UndecidedError("not decided whether the quorums meet: the weights leave too many cases")
        layers.append(layer)
        states = layer
    return _confirmed(a, b, _pair(kinds, layers)) if (None, None) in states else None


_START = _Choice(0, (None, None), (0, 0))


def _kinds(rules: tuple[_Rule, _Rule]) -> list[tuple[tuple[_Seat, _Seat], list[Sid]]]:
    """The servers by their places in both views. Those of a group follow each other, so that it is soon decided."""
    kinds = defaultdict(list)
    for sid in sorted(rules[0].places.keys() | rules[1].places.keys()):
        kinds[rules[0].places.get(sid, _Seat()), rules[1].places.get(sid, _Seat())].append(sid)
    return sorted(kinds.items())


def _potential(kinds: Sequence[tuple[tuple[_Seat, _Seat], list[Sid]]], which: int) -> dict[int, int]:
    potential: dict[int, int] = defaultdict(int)
    for places, servers in kinds:
        group, weight = places[which]
        potential[group] += max(weight, 0) * len(servers)
    return potential


class _Costs:
    """Costs whose least sum belongs to the answer: a server costs much, and a low id saves a little."""

    def __init__(self, rules: tuple[_Rule, _Rule]) -> None:
        voters = [(which, sid) for which, rule in enumerate(rules) for sid in sorted(rule.places)]
        self._server = 1 << len(voters)
        self._saved = {voter: 1 << place for place, voter in enumerate(reversed(voters))}

    def of(self, servers: Sequence[Sid]) -> Callable[[int, int], int]:
        """The cost of a kind, if its first servers join the quorum of a, and the next ones that of b."""
        saved_a, saved_b = (
            list(accumulate((self._saved.get((which, sid), 0) for sid in servers), initial=0)) for which in (0, 1)
        )
        return lambda in_a, in_b: (in_a + in_b) * self._server - saved_a[in_a] - saved_b[in_a + in_b] + saved_b[in_a]


def _pair(
    kinds: Sequence[tuple[tuple[_Seat, _Seat], list[Sid]]], layers: Sequence[Mapping[_State, _Choice]]
) -> DisjointQuorums:
    """The pair that the choices lead to, read from the end."""
    left, right = set[Sid](), set[Sid]()
    state: _State = (None, None)
    for (_, servers), layer in zip(reversed(kinds), reversed(layers), strict=True):
        _, state, (in_a, in_b) = layer[state]
        left.update(servers[:in_a])
        right.update(servers[in_a : in_a + in_b])
    return DisjointQuorums(frozenset(left), frozenset(right))


def _confirmed(a: View, b: View, pair: DisjointQuorums) -> DisjointQuorums:
    """The pair, after the specification has confirmed it. Raises UndecidedError otherwise."""
    if pair.a & pair.b or not a.contains_quorum(pair.a) or not b.contains_quorum(pair.b):
        raise UndecidedError(f"{pair} is not a pair of disjoint quorums: the translation is wrong")
    return pair


@dataclass(frozen=True)
class RunningView:
    """One stage of the theorem: the view that its files give, and the servers started in this stage or before."""

    view: View
    running: frozenset[Sid]


@dataclass(frozen=True)
class FailedPremise:
    """The first premise that fails, for the stages at two positions (from 0, the earlier one first).

    Either `disjoint` are two quorums that do not meet, or `observer` is a running server that is an observer in one of
    the views and a voter in the other; the other field is None.
    """

    earlier: int
    later: int
    disjoint: DisjointQuorums | None = None
    observer: Sid | None = None


def failed_premise(stages: Sequence[RunningView]) -> FailedPremise | None:
    """The first pair of equal or neighbouring stages that breaks the premise `ONE_GO`; None if it holds.

    If all servers run from the first stage on, this is the premise `STAGED`. That no role changes is sufficient for
    counting voters only, and not necessary: an observer that restarts before all others is not counted either.
    Raises ValueError if a server stops running, since the theorem's servers are started once, and
    checker.symbolic.disjoint.UndecidedError if the search is given up.
    """
    changed = _changed_role(stages)
    disjoint = disjoint_stages(stages)
    failed = [premise for premise in (disjoint, changed) if premise is not None]
    return min(failed, key=lambda each: (each.earlier, each.later), default=None)


def disjoint_stages(stages: Sequence[RunningView]) -> FailedPremise | None:
    """The first pair of equal or neighbouring stages with disjoint quorums of running servers; None if all meet.

    Raises ValueError and UndecidedError like `failed_premise`.
    """
    for i, j, running in _pairs(stages):
        disjoint = disjoint_quorums(stages[i].view, stages[j].view, running)
        if disjoint is not None:
            return FailedPremise(i, j, disjoint=disjoint)
    return None


def _changed_role(stages: Sequence[RunningView]) -> FailedPremise | None:
    for i, j, running in _pairs(stages):
        a, b = stages[i].view, stages[j].view
        changed = (a.observers & b.voters | a.voters & b.observers) & running
        if changed:
            return FailedPremise(i, j, observer=min(changed))
    return None


def _pairs(stages: Sequence[RunningView]) -> Iterator[tuple[int, int, frozenset[Sid]]]:
    """Every two equal or neighbouring stages, with the servers that run in the stage after the earlier one."""
    for i, stage in enumerate(stages):
        following = stages[min(i + 1, len(stages) - 1)]
        stopped = stage.running - following.running
        if stopped:
            raise ValueError(f"servers {sorted(stopped)} run in stage {i} and not in stage {i + 1}")
        for j in range(i, min(i + 2, len(stages))):
            yield i, j, following.running
