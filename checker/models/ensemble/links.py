"""Cuts and repairs of links: one link, or all links between two sides of the ensemble.

Messages in flight on a cut link are lost; messages in a send queue, and the last one sent, are not. A healed link does
not reconnect its servers: the next message does.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from checker.engine import Move, Read, Rule, Send
from checker.models.ensemble.columns import Change, ConnectionsEnded, LinkChange, reachable
from checker.models.ensemble.connection import Disconnection
from checker.models.ensemble.faults import Spend, has_left
from checker.models.ensemble.names import CONNECTIONS, FAULTS, LINKS, Link, channel_name, connection_name, server_name
from checker.models.ensemble.setup import Grain, Setup
from checker.models.ensemble.status import is_running
from spec.quorum import Sid


def rules(setup: Setup) -> Iterator[Rule]:
    """The rules of links, without those that a budget of zero disables for the whole run."""
    budgets = setup.budgets
    if budgets.cuts:
        yield from (_cut(setup, "cut", f"{a} {b}", (a, b), ((a, b),)) for a, b in combinations(setup.sids, 2))
    if budgets.partitions:
        yield from (_cut(setup, "partition", str(side), (side,), crossing) for side, crossing in splits(setup.sids))
    if budgets.heals:
        yield _heal(setup)


def splits(sids: tuple[Sid, ...]) -> Iterator[tuple[tuple[Sid, ...], tuple[Link, ...]]]:
    """Every partition of the servers into two sides: the side of the first server, and the links that cross."""
    first, *rest = sids
    for size in range(len(rest)):
        for chosen in combinations(rest, size):
            side = (first, *chosen)
            yield side, tuple((a, b) for a, b in combinations(sids, 2) if (a in side) is not (b in side))


def _cut(setup: Setup, action: str, label: str, arguments: tuple[Any, ...], links: tuple[Link, ...]) -> Rule:
    """A link is cut, or all links between two sides: messages in flight on it are lost."""
    budget = {"cut": "cuts", "partition": "partitions"}[action]
    sends = [Send(FAULTS, Spend(budget)), Send(LINKS, LinkChange(frozenset(links)))]
    if setup.keeps_connections:
        sends.append(Send(CONNECTIONS, ConnectionsEnded(cut=frozenset(links))))
    if setup.grain is Grain.FINE:
        crossing = [(a, b) for one, other in links if setup.talk(one, other) for a, b in ((one, other), (other, one))]
        sends += [Send(channel_name(a, b), Change("cut")) for a, b in crossing]
    if setup.zab is not None:
        sends += [Send(connection_name(*link), Disconnection()) for link in links if link in setup.quorum_pairs]
    move = Move(action, arguments, tuple(sends))
    whole = Read(LINKS, lambda cut: None if cut >= frozenset(links) else True)
    return Rule(f"{action} {label}", (has_left(budget), whole), lambda *_: [move])


def _heal(setup: Setup) -> Rule:
    """Every link is up again; this does not reconnect any servers."""

    def moves(_: bool, cut: frozenset[Link], *running: bool) -> list[Move]:
        up = {sid for sid, runs in zip(setup.sids, running, strict=True) if runs}
        sends = [Send(FAULTS, Spend("heals")), Send(LINKS, LinkChange(healed=True))]
        if setup.grain is Grain.FINE:
            for one, other in sorted(cut):
                if {one, other} <= up and setup.talk(one, other):
                    sends += reachable(one, other)
        return [Move("heal", (), tuple(sends))]

    some = Read(LINKS, lambda cut: cut or None)
    return Rule("heal", (has_left("heals"), some, *(Read(server_name(sid), is_running) for sid in setup.sids)), moves)
