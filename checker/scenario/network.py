"""A network that is faster than every timer, as on one machine or in one rack.

A server waits 200 ms before it decides (finalizeWait), and an operator's restart takes longer still. A notification
takes less than 1 ms. With `network: fast` no such wait ends, and no operator acts, while a notification is in flight.
Without it messages may take any time, and all orders are explored.

Rules of this module: steps are only removed, so a finding is a run of the whole model. The absence of a finding holds
for a fast network only, and the bounds of the job say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from checker.engine import Model, Move, Read, Rule
from checker.models.ensemble.actions import Action
from checker.models.ensemble.rules import pairs
from checker.models.ensemble.setup import Setup, channel_name
from spec.election.channel import Channel


def fast(model: Model, setup: Setup) -> Model:
    """The model without the steps that wait while a notification is in flight; fine grain only."""
    quiet = tuple(Read(channel_name(a, b), _nothing_in_flight) for a, b in pairs(setup))
    slow = {*setup.planned, *(action for action in Action if action.traits.waits)}
    rules = tuple(rule if slow.isdisjoint(rule.actions) else _waiting(rule, quiet) for rule in model.rules)
    return Model(model.name, model.columns, model.actors, rules, model.properties)


def _nothing_in_flight(channel: Channel) -> bool | None:
    return None if channel.in_flight else True


def _waiting(rule: Rule, quiet: tuple[Read, ...]) -> Rule:
    return replace(rule, reads=(*rule.reads, *quiet), moves=_of_first(rule.moves, len(rule.reads)))


def _of_first(moves: Callable[..., Iterable[Move] | None], count: int) -> Callable[..., Iterable[Move] | None]:
    return lambda *arguments: moves(*arguments[:count])
