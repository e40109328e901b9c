"""A client: its recipe's state, and the remaining wishes of its application.

The recipe decides by `spec.recipes`; this module carries its effects to the link, to the resource and to the recorded
facts. Rules of this module:

- At most one request is outstanding. Its reply is lost with the connection: the recipe then gets `Suspended` and, in
  the same step, `Unanswered`.
- Every id that a client passes to its recipe is derived from its number, so a znode with that id is its own.
- All crashed clients have the same value, whatever their earlier state.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from checker.engine import Actor, ModelError, Outcome, Send
from checker.models.recipes.observations import FollowReport, HoldReport
from checker.models.recipes.resource import SendWrite
from checker.models.recipes.setup import LEADERS, Facts, RecipeSetup, mail_name
from checker.models.service import (
    ClientCrash,
    ConnectionLoss,
    ConnectionStart,
    Delivery,
    Reply,
    SendRequest,
    SessionExpiry,
    WatchNotification,
    client_name,
    link_name,
)
from spec.effects import Fact, Observe
from spec.recipes import events


class ApplicationAction(enum.Enum):
    """An action of an application."""

    WANT = "want"
    AGAIN = "take again"
    RELEASE = "release"
    QUIT = "give up"
    RETURN = "return"
    WRITE = "write"

    @property
    def is_fair(self) -> bool:
        """Whether it happens at last if it stays possible: a client that holds does not keep it for ever."""
        return self in (ApplicationAction.RELEASE, ApplicationAction.RETURN)


class Client(msgspec.Struct, frozen=True):
    """A client. `rounds`, `again`, `quits` and `writes` are its remaining budgets.

    `taken`: the number of times that the application has taken what it holds, minus its releases. `given_up`: a release
    has ended the holding while `taken` was above 0. `asked`: a reply is outstanding.
    """

    recipe: Any
    rounds: int = 0
    again: int = 0
    quits: int = 0
    writes: int = 0
    taken: int = 0
    given_up: bool = False
    asked: bool = False
    crashed: bool = False


def first_client(setup: RecipeSetup) -> Client:
    """A client before its first wish."""
    return Client(setup.machine.initial, setup.rounds, setup.again, setup.quits, setup.writes)


def crashed() -> Client:
    """A client that has crashed."""
    return Client(None, crashed=True)


def possible_actions(setup: RecipeSetup, client: Client) -> tuple[ApplicationAction, ...]:
    """The wishes that the application may act on now."""
    if client.crashed:
        return ()
    recipe, state = setup.machine, client.recipe
    active, acts = recipe.active(state), recipe.acts(state)
    able = {
        ApplicationAction.WANT: client.rounds > 0 and recipe.idle(state),
        ApplicationAction.AGAIN: client.again > 0 and active,
        ApplicationAction.RELEASE: client.taken > 0 and active and not recipe.calls,
        ApplicationAction.QUIT: client.quits > 0 and recipe.waits(state),
        ApplicationAction.RETURN: acts and recipe.calls,
        ApplicationAction.WRITE: client.writes > 0 and acts,
    }
    return tuple(wish for wish, may in able.items() if may)


def client_actor(number: int, setup: RecipeSetup) -> Actor:
    """The actor of the client with that number."""
    name, id = client_name(number), f"c{number}"

    def step(values: tuple[Any, ...], said: Any) -> Outcome | None:
        client: Client = values[0]
        match said:
            case ClientCrash():
                return Outcome((crashed(),))
            case Delivery(Reply(_, code, reply)):
                return _run(replace(client, asked=False), [events.Answered(code, reply)])
            case Delivery(WatchNotification(type_, path)):
                return _run(client, [events.Notified(type_, path)])
            case ConnectionLoss():
                lost = [events.Unanswered()] if client.asked else []
                return _run(replace(client, asked=False), [events.Suspended(), *lost])
            case SessionExpiry():
                return _run(client, [events.Expired()])
            case ConnectionStart(resumed):
                return _run(client, [events.Connected(resumed, id)])
            case ApplicationAction():
                return _wish(client, said)
        raise ModelError(f"{name} does not know the operation {said!r}")

    def _wish(client: Client, wish: ApplicationAction) -> Outcome:
        match wish:
            case ApplicationAction.WANT:
                return _run(replace(client, rounds=client.rounds - 1, taken=1), [events.Join(id)])
            case ApplicationAction.AGAIN:
                return _run(replace(client, again=client.again - 1, taken=client.taken + 1), [events.Join(id)])
            case ApplicationAction.RELEASE:
                return _run(replace(client, taken=client.taken - 1), [events.Leave()])
            case ApplicationAction.QUIT:
                # A client in doubt may have taken it several times; it gives up all of them.
                given_up = [events.Leave()] * max(client.taken, 1)
                return _run(replace(client, quits=client.quits - 1, taken=0), given_up)
            case ApplicationAction.RETURN:
                return _run(client, [events.Returned()])
            case ApplicationAction.WRITE:
                machine, state = setup.exclusive, client.recipe
                post = Send(mail_name(number), SendWrite(machine.token(state) or 0, machine.path(setup.rules, state)))
                return Outcome((replace(client, writes=client.writes - 1),), (post,))

    def _run(client: Client, heard: Iterable[events.Event]) -> Outcome:
        sends: list[Send] = []
        for event in heard:
            done = setup.machine.step(setup.rules, client.recipe, event)
            client = replace(client, recipe=done.state)
            for effect in done.effects:
                match effect:
                    case Observe(events.HoldsNoMore()) if client.taken and isinstance(event, events.Leave):
                        client = replace(client, given_up=True)
                    case Observe(events.Withdrawn()):
                        client = replace(client, taken=0)
                    case events.Ask(record):
                        if client.asked:
                            raise ModelError(f"{name} asks for {record!r} while another request is outstanding")
                        client = replace(client, asked=True)
                        sends.append(Send(link_name(number), SendRequest(record)))
                if isinstance(effect, Observe):
                    sends.extend(_observed(effect.fact))
        return Outcome((client,), tuple(sends))

    def _observed(fact: Fact) -> Iterable[Send]:
        match fact:
            case events.Failed(code):
                raise ModelError(f"{name} fails with {code.name}, which no run of this recipe may reach")
            case events.Holds(path) | events.First(path) if Facts.LEADERS in setup.facts:
                yield Send(LEADERS, HoldReport(path))
            case events.Follows(leader) if Facts.LEADERS in setup.facts:
                yield Send(LEADERS, FollowReport(leader))

    return Actor(name, (name,), step)
