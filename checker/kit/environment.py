"""The faults of an environment, for any model: processes crash and start again, links are cut and heal.

`environment` makes the parts of a model for the faults that have a budget; `network_model` calls it for machines. A
fault is an operation too: its action is sent to the actors that feel it. Rules of this module:

- A process that is down takes no step. Its state is then the one that it will start with, so it starts in one step.
- A cut link loses the messages on it and those sent over it, in both directions, until all links heal together.
- A fault without a budget has no rule, and adds no state.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import msgspec

from checker.engine import Actor, Column, Move, Outcome, Read, Rule, Send
from checker.kit.actions import (
    FAULTS,
    Action,
    Budget,
    BudgetCounts,
    FaultAction,
    Faults,
    faults_actor,
    has_left,
    limited_rule,
    spend,
)

LINKS = "links"  # the column of the links that are cut
Ends: TypeAlias = frozenset[Any]
"""The two processes of a link."""


class Environment(BudgetCounts, frozen=True):
    """The number of times that each fault may happen, over the whole run.

    `losses` are single lost messages. `timeouts` limit the choices of machines whose action has this budget.
    `unfinished_writes` is a number at a time, and not over the run: the disk of each machine is late, with at most this
    number of unfinished writes (`checker.kit.disk`); with 0 no disk is late.

        Environment(crashes=1, restarts=1, partitions=1, heals=1)
    """

    crashes: int = 0
    restarts: int = 0
    cuts: int = 0
    partitions: int = 0
    heals: int = 0
    losses: int = 0
    timeouts: int = 0
    unfinished_writes: int = 0


ENVIRONMENT: Mapping[str, Budget] = MappingProxyType(
    {
        "crashes": Budget("crash", "crashes", "how many servers may crash"),
        "restarts": Budget("restart after a crash", "restarts after crashes", "how many crashed servers may come back"),
        "cuts": Budget("cut of a link", "cuts of a link", "how many links may be cut"),
        "partitions": Budget("partition", "partitions", "how often the ensemble may be cut in two"),
        "heals": Budget("healing of all links", "healings of all links", "how often all cut links may heal together"),
        "losses": Budget("lost message", "lost messages"),
        "timeouts": Budget("time-out", "time-outs"),
        "unfinished_writes": Budget("unfinished write of a machine", "unfinished writes of a machine"),
    }
)
"""The description of each budget of an `Environment`."""


class ModelFragment(NamedTuple):
    """Columns, actors and rules that one part of a model contributes."""

    columns: tuple[Column, ...] = ()
    actors: tuple[Actor, ...] = ()
    rules: tuple[Rule, ...] = ()


def shared_budgets(budgets: BudgetCounts) -> ModelFragment:
    """The column and the actor of budgets, from which any move of a model takes one by `spend`.

    A move that takes from an exhausted budget is impossible.

        class Budgets(BudgetCounts, frozen=True):
            retries: int = 0

        parts = shared_budgets(Budgets(retries=3))
        Move("retry", (), (spend("retries"), Send("client", "retry")))
    """
    return ModelFragment((Column(FAULTS, Faults(budgets)),), (faults_actor(),))


def environment(
    processes: Mapping[Any, tuple[Send, ...]], links: Mapping[Ends, tuple[str, ...]], budgets: Environment
) -> ModelFragment:
    """The faults of processes, each with the operations of its end, and of links, each with its channels."""
    shared = shared_budgets(budgets)
    columns, actors = [*shared.columns], [*shared.actors]
    if budgets.cuts or budgets.partitions:
        columns.append(Column(LINKS, frozenset()))
        actors.append(links_actor())
    return ModelFragment(tuple(columns), tuple(actors), tuple(_rules(processes, links, budgets)))


def _rules(
    processes: Mapping[Any, tuple[Send, ...]], links: Mapping[Ends, tuple[str, ...]], budgets: Environment
) -> Iterator[Rule]:
    for name, end in processes.items() if budgets.crashes else ():
        yield limited_rule(FaultAction.CRASH, name, (name,), end, is_up(name), crashed=name)
        if budgets.restarts:
            yield limited_rule(FaultAction.RESTART, name, (name,), (), _is_down(name), started=name)
    for ends in links if budgets.cuts else ():
        yield _cut(FaultAction.CUT, tuple(sorted(ends)), {ends: links[ends]})
    names = tuple(dict.fromkeys(name for ends in links for name in sorted(ends)))
    for side, _ in splits(names) if budgets.partitions else ():
        crossing = {ends: links[ends] for ends in links if len(ends & {*side}) == 1}
        if crossing:
            yield _cut(FaultAction.PARTITION, (side,), crossing)
    if budgets.heals and (budgets.cuts or budgets.partitions):
        yield _heal(links)


def splits(names: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], tuple[tuple[Any, Any], ...]]]:
    """Every partition of processes into two sides: the side of the first one, and the pairs that it separates."""
    first, *rest = names
    for size in range(len(rest)):
        for chosen in combinations(rest, size):
            side = (first, *chosen)
            yield side, tuple((a, b) for a, b in combinations(names, 2) if (a in side) is not (b in side))


def is_up(name: Any) -> Read:
    """A gate: the process is not down."""
    return Read(FAULTS, lambda faults: None if name in faults.down else True)


def _is_down(name: Any) -> Read:
    return Read(FAULTS, lambda faults: True if name in faults.down else None)


class LinkChange(msgspec.Struct, frozen=True):
    """Links are cut, or all of them heal."""

    cut: frozenset[Any] = frozenset()
    healed: bool = False


def links_actor() -> Actor:
    """The cut links."""

    def step(values: tuple[Any, ...], change: LinkChange) -> Outcome | None:
        cut = frozenset() if change.healed else values[0] | change.cut
        return None if cut == values[0] else Outcome((cut,))

    return Actor(LINKS, (LINKS,), step)


def cut_rule(
    action: Action, label: object, arguments: tuple[Any, ...], links: frozenset[Any], sends: Iterable[Send]
) -> Rule:
    """The rule that cuts these links, unless all of them are cut; the operations are those of their channels."""
    change = Send(LINKS, LinkChange(links))
    whole = Read(LINKS, lambda cut: None if cut >= links else True)
    return limited_rule(action, label, arguments, (change, *sends), whole)


def _cut(action: FaultAction, arguments: tuple[Any, ...], links: Mapping[Ends, tuple[str, ...]]) -> Rule:
    sends = (Send(actor, FaultAction.CUT) for actors in links.values() for actor in actors)
    return cut_rule(action, " ".join(map(str, arguments)), arguments, frozenset(links), sends)


def _heal(links: Mapping[Ends, tuple[str, ...]]) -> Rule:
    action = FaultAction.HEAL

    def moves(cut: frozenset[Ends], _: bool) -> list[Move]:
        mended = (Send(actor, action) for ends, actors in links.items() if ends in cut for actor in actors)
        return [Move(action, (), (spend(action), Send(LINKS, LinkChange(healed=True)), *mended))]

    return Rule("heal", (Read(LINKS, lambda cut: cut or None), has_left(action)), moves, (action,))
